#ifndef BATON_PREFILL_SERVICE_PREFILL_WORKER_H_
#define BATON_PREFILL_SERVICE_PREFILL_WORKER_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/worker_loop.h"
#include "kv_transfer/handoff_sender.h"
#include "prefill_service/prefill_scheduler.h"

namespace baton {

// The loop of a prefill worker: see WorkerLoop. Beside its legs it has the handoffs that it sends.
class PrefillWorker final : public WorkerLoop<PrefillWorker, PrefillScheduler> {
 public:
  struct Options {
    PrefillSchedulerOptions scheduler;
    std::string instance_id;
    std::vector<KvBackendKind> transports;
    ChannelFactory channels;  // to the decode workers that landings name
  };

  PrefillWorker(Options options, const WorkerParts& parts);
  ~PrefillWorker() override;

 private:
  friend WorkerLoop;
  using WorkerLoop::Perform;

  static uint32_t RecomputedTokens(const v1::PrefillRequest& request);
  Engine::LayersDone layers_done();
  void Observe(const v1::PrefillEvent& event);
  void Perform(PrefillScheduler::StartHandoff& action);
  void Perform(PrefillScheduler::HandoffComputed& action);
  void Perform(PrefillScheduler::HandoffPromptDone& action);
  void Perform(PrefillScheduler::CancelHandoff& action);

  // Goes first: it reports to the loop.
  std::unique_ptr<HandoffSender> sender_;
};

}  // namespace baton

#endif  // BATON_PREFILL_SERVICE_PREFILL_WORKER_H_
