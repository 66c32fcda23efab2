#include "prefill_service/prefill_worker.h"

#include <utility>

namespace baton {

PrefillWorker::PrefillWorker(Options options, const WorkerParts& parts)
    : WorkerLoop(options.instance_id, parts, options.scheduler, &parts.engine->info(), &parts.engine->kv()) {
  HandoffSender::Options sender;
  sender.instance_id = std::move(options.instance_id);
  sender.transports = std::move(options.transports);
  sender.pools = &parts.engine->kv();
  sender.device = parts.device;
  sender.clock = parts.clock;
  sender.metrics = parts.metrics;
  sender.channels = std::move(options.channels);
  sender.on_finished = [this](HandoffResult result) {
    Post([result = std::move(result)](PrefillScheduler& s) { return s.OnHandoffFinished(result); });
  };
  sender_ = std::make_unique<HandoffSender>(std::move(sender));
}

PrefillWorker::~PrefillWorker() = default;

uint32_t PrefillWorker::RecomputedTokens(const v1::PrefillRequest& request) {
  return request.attempt().number() > 0 ? static_cast<uint32_t>(request.request().prompt_size()) : 0;
}

Engine::LayersDone PrefillWorker::layers_done() {
  return [this](LayerRange layers) { Perform(scheduler().OnLayersDone(layers)); };
}

void PrefillWorker::Observe(const v1::PrefillEvent& event) {
  if (!event.has_first_token()) return;
  metrics().Get<Metric::kPrefill>().Observe(event.first_token().compute_ms() / 1000);
}

void PrefillWorker::Perform(PrefillScheduler::StartHandoff& action) {
  sender_->Start(std::move(action.spec), std::move(action.source));
}

void PrefillWorker::Perform(PrefillScheduler::HandoffComputed& action) {
  sender_->Computed(action.transfer_id, action.layers, action.tokens);
}

void PrefillWorker::Perform(PrefillScheduler::HandoffPromptDone& action) {
  sender_->PromptDone(action.transfer_id, std::move(action.commit));
}

void PrefillWorker::Perform(PrefillScheduler::CancelHandoff& action) { sender_->Cancel(action.transfer_id); }

}  // namespace baton
