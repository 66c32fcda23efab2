#include "decode_service/decode_worker.h"

#include <utility>

#include "common/log.h"

namespace baton {

DecodeWorker::DecodeWorker(const DecodeSchedulerOptions& options, std::vector<KvBackendKind> transports,
                           RandomSource* random, const WorkerParts& parts)
    : WorkerLoop(options.instance_id, parts, options, &parts.engine->info(), &parts.engine->kv(), random) {
  HandoffReceiver::Options receiver;
  receiver.transports = std::move(transports);
  receiver.pools = &parts.engine->kv();
  receiver.device = parts.device;
  receiver.clock = parts.clock;
  receiver.metrics = parts.metrics;
  receiver.on_landed = [this](landing::Landed landed) {
    Post([this, landed = std::move(landed)](DecodeScheduler& scheduler) mutable {
      return scheduler.OnLanded(std::move(landed), clock().Now());
    });
  };
  receiver.on_failed = [this](landing::LandingFailed failed) {
    Post([failed = std::move(failed)](DecodeScheduler& scheduler) {
      return scheduler.OnLandingFailed(failed);
    });
  };
  receiver_ = std::make_unique<HandoffReceiver>(std::move(receiver));
}

DecodeWorker::~DecodeWorker() = default;

void DecodeWorker::Advertise(std::string address) {
  Post([address = std::move(address)](DecodeScheduler& scheduler) mutable {
    scheduler.set_advertise(std::move(address));
    return DecodeScheduler::Actions();
  });
}

uint32_t DecodeWorker::RecomputedTokens(const v1::DecodeRequest& request) {
  const bool prompt_again = request.attempt().number() > 0 && request.has_local();
  return static_cast<uint32_t>(request.request().output_size() +
                               (prompt_again ? request.request().prompt_size() : 0));
}

void DecodeWorker::Observe(const v1::DecodeEvent& event) {
  if (!event.has_tokens()) return;
  const v1::Tokens& tokens = event.tokens();
  if (tokens.has_prefill_compute_ms())
    metrics().Get<Metric::kPrefill>().Observe(tokens.prefill_compute_ms() / 1000);
  if (tokens.has_decode_queue_ms())
    metrics().Get<Metric::kDecodeQueue>().Observe(tokens.decode_queue_ms() / 1000);
}

void DecodeWorker::Perform(DecodeScheduler::StartLanding& action) { receiver_->Add(std::move(action.spec)); }

void DecodeWorker::Perform(DecodeScheduler::DropLanding& action) { receiver_->Drop(action.transfer_id); }

void DecodeWorker::Perform(DecodeScheduler::Preempted& action) {
  metrics().Get<Metric::kPreemptions>().Increment();
  Log(LogLevel::kInfo, "preempted",
      {{"request_id", action.request_id}, {"tokens", action.tokens}, {"nth", action.nth}});
}

void DecodeWorker::Perform(DecodeScheduler::Resumed& action) {
  metrics().Get<Metric::kRecomputedTokens>().Increment(action.tokens);
}

}  // namespace baton
