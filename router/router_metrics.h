#ifndef BATON_ROUTER_ROUTER_METRICS_H_
#define BATON_ROUTER_ROUTER_METRICS_H_

#include "common/metrics.h"
#include "router/router_actions.h"
#include "router/worker_registry.h"

namespace baton {

// What a router measures, from the actions of its machine. Used by the router's executor.
class RouterMetrics {
 public:
  explicit RouterMetrics(Metrics* metrics);

  void OnSend(const SendToClient& send);
  void OnEnd(const EndCall& end);
  void OnAttemptLost(const AttemptLost& lost);
  void OnLoad(uint32_t running, uint32_t waiting);
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
  prometheus::Counter& cached_tokens_;
  prometheus::Counter& generation_tokens_;
  prometheus::Gauge& running_;
  prometheus::Gauge& waiting_;
};

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_METRICS_H_
