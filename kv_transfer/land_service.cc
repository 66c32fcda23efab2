#include "kv_transfer/land_service.h"

#include <deque>
#include <optional>
#include <utility>

#include "common/caller.h"
#include "common/grpc_status.h"

namespace baton {

// One Land stream. Lives until gRPC has reported its end.
class LandService::Call final : public grpc::ServerBidiReactor<v1::LandRequest, v1::LandReply> {
 public:
  Call(LandService* service, LandStreamId stream) : service_(service), stream_(stream) {}

  void Start() { StartRead(&request_); }

  void Write(v1::LandReply reply) {
    MutexLock lock(&mutex_);
    if (ending_.has_value()) return;
    queue_.push_back(std::move(reply));
    Advance();
  }

  void ReadNext() {
    MutexLock lock(&mutex_);
    if (!finished_) StartRead(&request_);
  }

  void Close(const absl::Status& status) {
    MutexLock lock(&mutex_);
    EndLocked(status);
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok) return service_->events_.on_message(stream_, std::move(request_));
    OnPeerGone("it sends no more");
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    queue_.pop_front();
    if (!ok) queue_.clear();
    Advance();
  }

  void OnCancel() override { OnPeerGone("the stream was cancelled or its connection lost"); }

  void OnDone() override { service_->OnDone(stream_); }

  void OnPeerGone(const char* why) {
    {
      MutexLock lock(&mutex_);
      if (ending_.has_value()) return;
      EndLocked(absl::CancelledError(why));
    }
    service_->events_.on_closed(stream_, absl::UnavailableError(why));
  }

  void EndLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ending_.has_value()) return;
    ending_ = status;
    // The message being written stays: gRPC reads it.
    if (!status.ok()) queue_.resize(writing_ ? 1 : 0);
    Advance();
  }

  // Finish waits for the write under way: what gRPC makes of a status behind a message in flight is not
  // certain. Replies are small, so only a peer that has stopped reading can hold it up, and what it holds up
  // is no more than this call.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_ || writing_) return;
    if (!queue_.empty()) {
      writing_ = true;
      StartWrite(&queue_.front());
    } else if (ending_.has_value()) {
      finished_ = true;
      Finish(ToGrpcStatus(*ending_));
    }
  }

  LandService* const service_;
  const LandStreamId stream_;
  v1::LandRequest request_;  // of the read under way

  Mutex mutex_;
  std::deque<v1::LandReply> queue_ ABSL_GUARDED_BY(mutex_);  // while writing_, the first one is gRPC's
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ending_ ABSL_GUARDED_BY(mutex_);  // how it ends, once that is known
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;               // gRPC was told
};

grpc::ServerBidiReactor<v1::LandRequest, v1::LandReply>* LandService::Land(
    grpc::CallbackServerContext* context) {
  std::shared_ptr<Call> call;
  LandStreamId stream = 0;
  {
    MutexLock lock(&mutex_);
    stream = ++last_stream_;
    call = std::make_shared<Call>(this, stream);
    calls_.emplace(stream, call);
  }
  events_.on_connected(stream, PeerIdentity(*context->auth_context()));
  call->Start();
  return call.get();
}

void LandService::Reply(LandStreamId stream, v1::LandReply reply) {
  if (const auto call = Find(stream)) call->Write(std::move(reply));
}

void LandService::ReadNext(LandStreamId stream) {
  if (const auto call = Find(stream)) call->ReadNext();
}

void LandService::Close(LandStreamId stream, const absl::Status& status) {
  if (const auto call = Find(stream)) call->Close(status);
}

std::shared_ptr<LandService::Call> LandService::Find(LandStreamId stream) {
  MutexLock lock(&mutex_);
  const auto found = calls_.find(stream);
  return found == calls_.end() ? nullptr : found->second;
}

void LandService::OnDone(LandStreamId stream) {
  MutexLock lock(&mutex_);
  calls_.erase(stream);
}

}  // namespace baton
