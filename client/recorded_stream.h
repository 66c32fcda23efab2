#ifndef BATON_CLIENT_RECORDED_STREAM_H_
#define BATON_CLIENT_RECORDED_STREAM_H_

#include <functional>

#include "absl/time/time.h"
#include "baton/v1/inference.grpc.pb.h"
#include "client/request_record.h"
#include "common/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"

namespace baton {

// One GenerateStream call whose every message is timed as gRPC hands it over. Takes no thread while it waits.
// Owns itself: Start makes one, and it is gone once it has called `on_done`.
class RecordedStream final : public grpc::ClientReadReactor<v1::GenerateStreamResponse> {
 public:
  using DoneFunction = std::function<void(const RequestRecord&)>;

  // `scheduled` is when the load wanted the request. `stub` and `clock` outlive the call; `on_done` is called
  // once, on a thread of gRPC's, and must not block.
  static void Start(v1::Inference::Stub* stub, const v1::GenerateRequest& request, absl::Time scheduled,
                    absl::Duration timeout, const Clock* clock, DoneFunction on_done);

 private:
  RecordedStream(const v1::GenerateRequest& request, absl::Time scheduled, const Clock* clock,
                 DoneFunction on_done);

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const Clock* const clock_;
  DoneFunction on_done_;
  const v1::GenerateRequest request_;
  grpc::ClientContext context_;

  // Touched by one reaction at a time, as gRPC orders them.
  v1::GenerateStreamResponse message_;
  RequestRecord record_;
};

}  // namespace baton

#endif  // BATON_CLIENT_RECORDED_STREAM_H_
