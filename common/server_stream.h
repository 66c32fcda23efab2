#ifndef BATON_COMMON_SERVER_STREAM_H_
#define BATON_COMMON_SERVER_STREAM_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/grpc_status.h"
#include "common/mutex.h"
#include "common/outgoing_stream.h"
#include "grpcpp/support/server_callback.h"

namespace baton {

// The reactor of one server-streaming call: a bounded queue, one write in flight.
//
//   auto stream = ServerStream<Event>::Create({.max_queued = 1024, .on_cancel = ..., .on_done = ...});
//   ... keep the shared_ptr wherever messages are written ...
//   return stream->reactor();        // from the service's method
//
// Lifetime: shared. The call itself holds one reference until gRPC is done with it, so owners keep theirs as
// long as they like and may write at any time. Every stream must be finished, cut or cancelled; a cancelled
// one ends by itself. Trailers are added to the context before Finish or Cut.
template <typename Message>
class ServerStream final : public OutgoingStream<Message>, private grpc::ServerWriteReactor<Message> {
 public:
  struct Options {
    size_t max_queued = 1024;  // messages, besides the one in flight
    // For readers that fall behind: adds `next` to the last queued message and returns true, or returns false
    // and it is queued by itself. Called with the stream's lock held.
    std::function<bool(Message* last, const Message& next)> merge;
    // The peer has gone or its deadline has passed, before Finish or Cut. At most once, on a thread of gRPC.
    std::function<void()> on_cancel;
    // The last call: nothing of the stream is left. Exactly once, on a thread of gRPC.
    std::function<void()> on_done;
  };

  static std::shared_ptr<ServerStream> Create(Options options) {
    std::shared_ptr<ServerStream> stream(new ServerStream(std::move(options)));
    stream->self_ = stream;
    return stream;
  }

  // To be returned to gRPC, once.
  grpc::ServerWriteReactor<Message>* reactor() { return this; }

  bool Write(Message message) override {
    MutexLock lock(&mutex_);
    if (status_) return true;
    if (!queue_.empty() && options_.merge && options_.merge(&queue_.back(), message)) return true;
    if (queue_.size() >= options_.max_queued) return false;
    queue_.push_back(std::move(message));
    Advance();
    return true;
  }

  void Finish(const absl::Status& status) override {
    MutexLock lock(&mutex_);
    if (status_) return;
    status_ = status;
    Advance();
  }

  void Cut(const absl::Status& status) override {
    MutexLock lock(&mutex_);
    if (status_) return;
    CutLocked(status);
  }

 private:
  explicit ServerStream(Options options) : options_(std::move(options)) {}

  void OnWriteDone(bool ok) override {
    std::function<void()> on_cancel;
    {
      MutexLock lock(&mutex_);
      in_flight_.reset();
      if (!ok) queue_.clear();
      // OnCancel follows, and then finds the status set: the owner hears of it here.
      if (!ok && !status_) {
        status_ = absl::CancelledError("the peer is gone");
        on_cancel = std::move(options_.on_cancel);
      }
      Advance();
    }
    if (on_cancel) on_cancel();
  }

  void OnCancel() override {
    std::function<void()> on_cancel;
    {
      MutexLock lock(&mutex_);
      if (!status_) {
        on_cancel = std::move(options_.on_cancel);
        CutLocked(absl::CancelledError("the call was cancelled"));
      } else {
        queue_.clear();
        Advance();
      }
    }
    if (on_cancel) on_cancel();
  }

  void OnDone() override {
    if (options_.on_done) options_.on_done();
    const std::shared_ptr<ServerStream> last = std::move(self_);
  }

  void CutLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    status_ = status;
    queue_.clear();
    // Behind the write in flight, which a peer that does not read may hold up for ever.
    if (!finished_) FinishLocked();
  }

  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (in_flight_ || finished_) return;
    if (!queue_.empty()) {
      in_flight_ = std::move(queue_.front());
      queue_.pop_front();
      this->StartWrite(&*in_flight_);
    } else if (status_) {
      FinishLocked();
    }
  }

  void FinishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    grpc::ServerWriteReactor<Message>::Finish(ToGrpcStatus(*status_));
  }

  Options options_;                     // its functions are called by gRPC alone
  std::shared_ptr<ServerStream> self_;  // set before the call begins, moved out by OnDone

  Mutex mutex_;
  std::deque<Message> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<Message> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);  // how it ends, once that is known
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;               // gRPC was told
};

}  // namespace baton

#endif  // BATON_COMMON_SERVER_STREAM_H_
