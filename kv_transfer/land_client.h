#ifndef BATON_KV_TRANSFER_LAND_CLIENT_H_
#define BATON_KV_TRANSFER_LAND_CLIENT_H_

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/mutex.h"
#include "common/transfer_id.h"
#include "grpcpp/channel.h"
#include "kv_transfer/land_data_writer.h"

namespace baton {

// A channel to the decode worker at `address`, whose certificate has `identity`; empty in plaintext.
using ChannelFactory =
    std::function<std::shared_ptr<grpc::Channel>(const std::string& address, const std::string& identity)>;

// The sending ends of Land streams, one per transfer. Decides nothing: turns calls into writes, one in flight
// per stream, and what gRPC reports into events. Thread-safe; no call blocks.
class LandClient final : public LandDataWriter {
 public:
  // Called on threads of gRPC.
  struct Events {
    // The next reply is read only after ReadNext.
    std::function<void(const TransferId&, v1::LandReply)> on_reply;
    // The stream is over; once per Open, also after Close. Writes that were still waiting fail after it.
    std::function<void(const TransferId&, absl::Status)> on_closed;
  };

  LandClient(ChannelFactory channels, Events events);
  // Closes every stream and waits until gRPC has let go of them.
  ~LandClient() override;

  // A transfer has one stream in its life.
  void Open(const TransferId& transfer_id, const std::string& address, const std::string& identity);
  // In order; without a stream it is dropped.
  void Send(const TransferId& transfer_id, v1::LandRequest request);
  void WriteData(const TransferId& transfer_id, v1::LandData data, Written written) override;
  void ReadNext(const TransferId& transfer_id);
  // Cancels the stream.
  void Close(const TransferId& transfer_id);

 private:
  class Call;
  struct Connection {
    std::string address;
    std::string identity;
    std::shared_ptr<grpc::Channel> channel;
  };

  std::shared_ptr<Call> Find(const TransferId& transfer_id) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<grpc::Channel> ChannelFor(const std::string& address, const std::string& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDone(std::shared_ptr<Call> call) ABSL_LOCKS_EXCLUDED(mutex_);

  const ChannelFactory make_channel_;
  const Events events_;

  Mutex mutex_;
  CondVar idle_;
  std::map<TransferId, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;  // calls that are not destroyed yet
  // Used latest first; the oldest go when there are too many, and live on in their calls.
  std::list<Connection> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_LAND_CLIENT_H_
