#ifndef BATON_KV_TRANSFER_LAND_SERVICE_H_
#define BATON_KV_TRANSFER_LAND_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "baton/v1/kv_transfer.grpc.pb.h"
#include "common/mutex.h"
#include "kv_transfer/landing_actions.h"

namespace baton {

// The receiving ends of Land streams. Decides nothing: turns what gRPC reports into events, and calls into
// writes, one in flight per stream. Thread-safe; no call blocks. Outlives the server that it is registered
// with.
class LandService final : public v1::KvTransfer::CallbackService {
 public:
  // Called on threads of gRPC.
  struct Events {
    // `identity`: in the peer's certificate; empty in plaintext.
    std::function<void(LandStreamId, std::string identity)> on_connected;
    // The next message is read only after ReadNext, so that one stream never has more than one waiting.
    std::function<void(LandStreamId, v1::LandRequest)> on_message;
    // The peer has ended the stream or is gone; at most once, and not after Close.
    std::function<void(LandStreamId, absl::Status)> on_closed;
  };

  explicit LandService(Events events) : events_(std::move(events)) {}

  // In order; on a stream that has ended it is dropped.
  void Reply(LandStreamId stream, v1::LandReply reply);
  void ReadNext(LandStreamId stream);
  // Ends the stream: with OK after the replies before it, with an error after the one being written.
  void Close(LandStreamId stream, const absl::Status& status);

  grpc::ServerBidiReactor<v1::LandRequest, v1::LandReply>* Land(
      grpc::CallbackServerContext* context) override;

 private:
  class Call;

  std::shared_ptr<Call> Find(LandStreamId stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone(LandStreamId stream) ABSL_LOCKS_EXCLUDED(mutex_);

  const Events events_;

  Mutex mutex_;
  LandStreamId last_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<LandStreamId, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_LAND_SERVICE_H_
