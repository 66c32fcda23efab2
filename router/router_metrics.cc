#include "router/router_metrics.h"

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace baton {
namespace {

constexpr double kMillisecond = 1e-3;

// "FINISH_REASON_STOP" -> "stop": the words of the proto without their prefix, in lower case.
std::string Word(const std::string& name, size_t prefix) {
  std::string word;
  for (char c : name.substr(prefix)) word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return word;
}

std::string FinishWord(v1::FinishReason reason) {
  return Word(v1::FinishReason_Name(reason), std::string("FINISH_REASON_").size());
}

}  // namespace

RouterMetrics::RouterMetrics(Metrics* metrics)
    : metrics_(metrics),
      ttft_(metrics->Get<Metric::kTimeToFirstToken>()),
      gap_(metrics->Get<Metric::kInterTokenLatency>()),
      tpot_(metrics->Get<Metric::kTimePerOutputToken>()),
      duration_(metrics->Get<Metric::kRequestDuration>()),
      queue_(metrics->Get<Metric::kRequestQueue>()),
      overhead_(metrics->Get<Metric::kRouterOverhead>()),
      handoff_(metrics->Get<Metric::kHandoff>()),
      prompt_tokens_(metrics->Get<Metric::kPromptTokens>()),
      generation_tokens_(metrics->Get<Metric::kGenerationTokens>()),
      retries_held_(metrics->Get<Metric::kRetriesHeld>()),
      recipe_changes_(metrics->Get<Metric::kRecipeChanges>()),
      running_(metrics->Get<Metric::kRequestsRunning>()),
      waiting_(metrics->Get<Metric::kRequestsWaiting>()),
      waiting_tokens_(metrics->Get<Metric::kWaitingTokens>()) {}

void RouterMetrics::OnSend(const SendToClient& send) {
  if (send.gap) gap_.Observe(absl::ToDoubleSeconds(*send.gap));
  generation_tokens_.Increment(send.response.count());
}

void RouterMetrics::OnEnd(const EndCall& end) {
  metrics_
      ->Get<Metric::kRequests>(absl::StatusCodeToString(end.status.code()),
                               end.status.ok() ? FinishWord(end.finish) : "")
      .Increment();
  if (absl::IsCancelled(end.status)) metrics_->Get<Metric::kCancels>(end.phase).Increment();
  const v1::Timings& timings = end.timings;
  recipe_changes_.Increment(timings.recipe_changes());
  if (timings.has_router_queue_ms()) queue_.Observe(timings.router_queue_ms() * kMillisecond);
  if (!timings.has_ttft_ms()) return;
  ttft_.Observe(timings.ttft_ms() * kMillisecond);
  overhead_.Observe(timings.tokenize_ms() * kMillisecond);
  if (timings.has_handoff_ms()) handoff_.Observe(timings.handoff_ms() * kMillisecond);
  if (!end.status.ok()) return;
  prompt_tokens_.Increment(end.usage.prompt_tokens());
  duration_.Observe(timings.e2e_ms() * kMillisecond);
  if (timings.has_tpot_ms()) tpot_.Observe(timings.tpot_ms() * kMillisecond);
}

void RouterMetrics::OnAttemptLost(const AttemptLost& lost) {
  metrics_->Get<Metric::kRecoveries>(lost.reason).Increment();
}

void RouterMetrics::OnLoad(uint32_t running, uint32_t waiting, uint64_t waiting_tokens) {
  running_.Set(running);
  waiting_.Set(waiting);
  waiting_tokens_.Set(static_cast<double>(waiting_tokens));
}

void RouterMetrics::OnWorkers(const v1::ListWorkersResponse& workers) {
  std::map<std::pair<v1::Role, v1::WorkerState>, int> counts;
  for (const v1::Role role : {v1::ROLE_PREFILL, v1::ROLE_DECODE}) {
    for (int state = v1::WORKER_STATE_CONNECTING; state <= v1::WorkerState_MAX; ++state) {
      counts[{role, static_cast<v1::WorkerState>(state)}] = 0;
    }
  }
  for (const v1::Worker& worker : workers.workers()) ++counts[{worker.role(), worker.state()}];
  for (const auto& [key, count] : counts) {
    const auto& [role, state] = key;
    metrics_
        ->Get<Metric::kWorkers>(Word(v1::Role_Name(role), std::string("ROLE_").size()),
                                Word(v1::WorkerState_Name(state), std::string("WORKER_STATE_").size()))
        .Set(count);
  }
}

}  // namespace baton
