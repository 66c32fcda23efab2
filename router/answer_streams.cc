#include "router/answer_streams.h"

#include <utility>

#include "common/grpc_status.h"
#include "router/server_timing.h"

namespace baton {
namespace {

constexpr uint32_t kMaxMergedTokens = 256;

void AddTrailers(grpc::CallbackServerContext* context, const v1::Timings& timings) {
  const std::string value = FormatServerTiming(timings);
  if (!value.empty()) context->AddTrailingMetadata("server-timing", value);
}

}  // namespace

bool MergeAnswer(v1::GenerateStreamResponse* last, const v1::GenerateStreamResponse& next) {
  if (last->count() + next.count() > kMaxMergedTokens) return false;
  const uint32_t index = last->has_index() ? last->index() : next.index();
  const bool has_index = last->has_index() || next.has_index();
  const uint32_t count = last->count() + next.count();
  const std::string text = last->text() + next.text();
  last->MergeFrom(next);  // adds the repeated fields, takes what the last message of an answer brings
  if (has_index) last->set_index(index);
  last->set_count(count);
  last->set_text(text);
  return true;
}

std::shared_ptr<StreamedAnswer> StreamedAnswer::Create(grpc::CallbackServerContext* context,
                                                       size_t max_unread, std::function<void()> on_cancel) {
  std::shared_ptr<StreamedAnswer> answer(new StreamedAnswer(context));
  answer->stream_ =
      ServerStream<v1::GenerateStreamResponse>::Create({.max_queued = max_unread,
                                                        .merge = MergeAnswer,
                                                        .on_cancel = std::move(on_cancel),
                                                        .on_done = [weak = std::weak_ptr(answer)] {
                                                          const std::shared_ptr<StreamedAnswer> done =
                                                              weak.lock();
                                                          if (done == nullptr) return;
                                                          MutexLock lock(&done->mutex_);
                                                          done->context_ = nullptr;
                                                        }});
  return answer;
}

bool StreamedAnswer::Send(v1::GenerateStreamResponse response) {
  has_hole_ = has_hole_ || !stream_->Write(std::move(response));
  return !has_hole_;
}

void StreamedAnswer::End(const absl::Status& how, const v1::Timings& timings) {
  const absl::Status status = has_hole_ ? SlowReaderError() : how;
  {
    MutexLock lock(&mutex_);
    if (context_ != nullptr) AddTrailers(context_, timings);
  }
  // A client that is cut off gets its status, not what it did not read.
  if (absl::IsResourceExhausted(status)) {
    stream_->Cut(status);
  } else {
    stream_->Finish(status);
  }
}

class WholeAnswer::Stream final : public ClientStream {
 public:
  Stream(WholeAnswer* answer, DrainState::Work work) : answer_(answer), work_(std::move(work)) {}

  bool Send(v1::GenerateStreamResponse response) override {
    v1::GenerateResponse& whole = *answer_->response_;
    whole.mutable_text()->append(response.text());
    whole.mutable_tokens()->MergeFrom(response.tokens());
    whole.mutable_logprobs()->MergeFrom(response.logprobs());
    if (response.has_prompt()) *whole.mutable_prompt() = std::move(*response.mutable_prompt());
    if (response.has_seed()) whole.set_seed(response.seed());
    if (response.has_finish()) {
      *whole.mutable_finish() = response.finish();
      *whole.mutable_usage() = response.usage();
      *whole.mutable_timings() = response.timings();
    }
    return true;
  }

  void End(const absl::Status& status, const v1::Timings& timings) override {
    AddTrailers(answer_->context_, timings);
    answer_->Finish(ToGrpcStatus(status));
  }

 private:
  WholeAnswer* const answer_;  // lives until it is finished
  const DrainState::Work work_;
};

std::shared_ptr<ClientStream> WholeAnswer::MakeStream(DrainState::Work work) {
  return std::make_shared<Stream>(this, std::move(work));
}

}  // namespace baton
