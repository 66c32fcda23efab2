#ifndef BATON_ROUTER_ANSWER_STREAMS_H_
#define BATON_ROUTER_ANSWER_STREAMS_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "baton/v1/inference.pb.h"
#include "common/drain_state.h"
#include "common/mutex.h"
#include "common/server_stream.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "router/client_stream.h"

namespace baton {

// Adds `next` to `last`, a message that its client has not read yet; false when `last` is large enough.
bool MergeAnswer(v1::GenerateStreamResponse* last, const v1::GenerateStreamResponse& next);

// The answer of GenerateStream: deltas as they come, merged while the client is behind.
class StreamedAnswer final : public ClientStream {
 public:
  // `on_cancel` is called at most once, on a thread of gRPC. The context is touched only until the call is
  // done.
  static std::shared_ptr<StreamedAnswer> Create(grpc::CallbackServerContext* context, size_t max_unread,
                                                std::function<void()> on_cancel);
  grpc::ServerWriteReactor<v1::GenerateStreamResponse>* reactor() { return stream_->reactor(); }
  // A drain waits for the call from now on.
  void Hold(DrainState::Work work) { work_ = std::move(work); }

  bool Send(v1::GenerateStreamResponse response) override;
  void End(const absl::Status& status, const v1::Timings& timings) override;

 private:
  explicit StreamedAnswer(grpc::CallbackServerContext* context) : context_(context) {}

  std::shared_ptr<ServerStream<v1::GenerateStreamResponse>> stream_;  // constant once created
  DrainState::Work work_;
  bool has_hole_ = false;  // of the executor
  Mutex mutex_;
  grpc::CallbackServerContext* context_ ABSL_GUARDED_BY(mutex_);  // null once gRPC is done with the call
};

// The answer of Generate: everything in one message. Deletes itself when gRPC is done with the call.
class WholeAnswer final : public grpc::ServerUnaryReactor {
 public:
  // `response` and `context` live until the call is done.
  WholeAnswer(grpc::CallbackServerContext* context, v1::GenerateResponse* response,
              std::function<void()> on_cancel)
      : context_(context), response_(response), on_cancel_(std::move(on_cancel)) {}
  // The sending end; used once.
  std::shared_ptr<ClientStream> MakeStream(DrainState::Work work);

 private:
  class Stream;
  void OnCancel() override { on_cancel_(); }
  void OnDone() override { delete this; }

  grpc::CallbackServerContext* const context_;
  v1::GenerateResponse* const response_;
  const std::function<void()> on_cancel_;
};

}  // namespace baton

#endif  // BATON_ROUTER_ANSWER_STREAMS_H_
