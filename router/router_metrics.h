#ifndef BATON_ROUTER_ROUTER_METRICS_H_
#define BATON_ROUTER_ROUTER_METRICS_H_

#include "common/metrics.h"
#include "router/router_actions.h"
#include "router/worker_registry.h"

namespace baton {

// What a router measures.
inline constexpr Metric kRouterMetrics[] = {
    Metric::kTimeToFirstToken, Metric::kInterTokenLatency, Metric::kTimePerOutputToken,
    Metric::kRequestDuration,  Metric::kRequestQueue,      Metric::kHandoff,
    Metric::kRouterOverhead,   Metric::kRequestsRunning,   Metric::kRequestsWaiting,
    Metric::kWaitingTokens,    Metric::kPromptTokens,      Metric::kGenerationTokens,
    Metric::kRequests,         Metric::kRecoveries,        Metric::kRetriesHeld,
    Metric::kRecipeChanges,    Metric::kCancels,           Metric::kWorkers,
};

// Measures it, from the actions of the router's machine. Used by the router's executor.
class RouterMetrics {
 public:
  explicit RouterMetrics(Metrics* metrics);

  void OnSend(const SendToClient& send);
  void OnEnd(const EndCall& end);
  void OnAttemptLost(const AttemptLost& lost);
  void OnRetryHeld() { retries_held_.Increment(); }
  void OnLoad(uint32_t running, uint32_t waiting, uint64_t waiting_tokens);
  void OnWorkers(const v1::ListWorkersResponse& workers);

 private:
  Metrics* const metrics_;
  prometheus::Histogram& ttft_;
  prometheus::Histogram& gap_;
  prometheus::Histogram& tpot_;
  prometheus::Histogram& duration_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& overhead_;
  prometheus::Histogram& handoff_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generation_tokens_;
  prometheus::Counter& retries_held_;
  prometheus::Counter& recipe_changes_;
  prometheus::Gauge& running_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& waiting_tokens_;
};

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_METRICS_H_
