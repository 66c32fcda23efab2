#include "tests/simulation/sim_client.h"

#include <utility>

#include "common/check.h"
#include "common/str_cat.h"
#include "tests/simulation/sim_router.h"

namespace baton {

void SimClient::Submit(CallId id, CallSpec spec) {
  const absl::Time now = world_->now();
  answers_[id].sent = now;
  spec.request_id = StrCat("request-", id);
  spec.return_tokens = true;
  spec.sampling.set_seed(id);
  board_->OnSubmitted(id);
  const absl::Time deadline = spec.deadline;
  calls_[id].stream = network_->Open(
      *this, Thread::kLoop, kRouterAddress, Thread::kLoop, StrCat("call ", id), deadline,
      [this, id, spec = std::move(spec), time_left = deadline - now](
          SimProcess& server, const std::shared_ptr<SimStream>& stream) {
        SimRouter* const router = dynamic_cast<SimRouter*>(&server);
        BATON_CHECK(router != nullptr);
        router->OnGenerate(
            stream, id, spec, time_left,
            [this, id](const v1::GenerateStreamResponse& response) { OnResponse(id, response); });
      },
      [this, id](const absl::Status& status) { OnEnd(id, status); });
}

void SimClient::Cancel(CallId id) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || answers_.at(id).ended) return;
  it->second.stream->Cancel();
  it->second.reading = true;
  OnEnd(id, absl::CancelledError("the client cancelled"));
}

void SimClient::ResumeReading(CallId id) {
  Call& call = calls_.at(id);
  call.reading = true;
  for (const v1::GenerateStreamResponse& response : std::exchange(call.unread, {})) OnResponse(id, response);
  if (call.unread_end) OnEnd(id, *std::exchange(call.unread_end, std::nullopt));
}

void SimClient::OnResponse(CallId id, const v1::GenerateStreamResponse& response) {
  Call& call = calls_.at(id);
  if (!call.reading) {
    call.unread.push_back(response);
    return;
  }
  ClientAnswer& answer = answers_.at(id);
  if (!answer.ended) Read(answer, response);
}

void SimClient::OnEnd(CallId id, const absl::Status& status) {
  ClientAnswer& answer = answers_.at(id);
  BATON_CHECK(!answer.ended);
  // When it came, though it may be read later.
  if (answer.ended_at == absl::Time()) answer.ended_at = world_->now();
  if (!calls_.at(id).reading) {
    calls_.at(id).unread_end = status;
    return;
  }
  answer.ended = true;
  answer.status = status;
  ++ended_;
}

void SimClient::Read(ClientAnswer& answer, const v1::GenerateStreamResponse& response) {
  if (response.count() > 0) {
    if (answer.tokens.empty()) answer.first_token = world_->now();
    answer.indexes.push_back(response.index());
  }
  answer.tokens.insert(answer.tokens.end(), response.tokens().begin(), response.tokens().end());
  answer.logprobs.insert(answer.logprobs.end(), response.logprobs().begin(), response.logprobs().end());
  answer.text += response.text();
  if (response.has_prompt()) answer.prompt = response.prompt();
  if (!response.has_finish()) return;
  answer.finish = response.finish();
  answer.usage = response.usage();
  answer.timings = response.timings();
}

}  // namespace baton
