#ifndef BATON_DECODE_SERVICE_DECODE_WORKER_H_
#define BATON_DECODE_SERVICE_DECODE_WORKER_H_

#include <memory>
#include <string>
#include <vector>

#include "common/random_source.h"
#include "decode_service/decode_scheduler.h"
#include "engine/worker_loop.h"
#include "kv_transfer/handoff_receiver.h"

namespace baton {

// The loop of a decode worker: see WorkerLoop. Beside its legs it has the handoffs that it receives.
//
//   the server of land_service() shuts down, then executor.Stop(), then comes the worker's end
class DecodeWorker final : public WorkerLoop<DecodeWorker, DecodeScheduler> {
 public:
  // `random` mints tickets; used by the loop alone.
  DecodeWorker(const DecodeSchedulerOptions& options, std::vector<KvBackendKind> transports,
               RandomSource* random, const WorkerParts& parts);
  ~DecodeWorker() override;

  // The address that landings name. Handoffs that come before it are refused with UNAVAILABLE.
  void Advertise(std::string address);
  // Where prefill workers bring KV: to be registered with the server at that address.
  grpc::Service* land_service() { return receiver_->service(); }

 private:
  friend WorkerLoop;
  using WorkerLoop::Perform;

  static uint32_t RecomputedTokens(const v1::DecodeRequest& request);
  Engine::LayersDone layers_done() { return nullptr; }
  void Observe(const v1::DecodeEvent& event);
  void Perform(DecodeScheduler::StartLanding& action);
  void Perform(DecodeScheduler::DropLanding& action);
  void Perform(DecodeScheduler::Preempted& action);
  void Perform(DecodeScheduler::Resumed& action);

  // Goes first: it reports to the loop.
  std::unique_ptr<HandoffReceiver> receiver_;
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_WORKER_H_
