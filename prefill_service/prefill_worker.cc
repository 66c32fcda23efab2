#include "prefill_service/prefill_worker.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "engine/warm_up.h"

namespace baton {
namespace {

// How long the figures of draining blocks may be old.
constexpr absl::Duration kRepublish = absl::Milliseconds(100);

}  // namespace

PrefillWorker::PrefillWorker(Options options, const Parts& parts)
    : warm_up_rows_(options.scheduler.min_chunk_tokens),
      engine_(parts.engine),
      clock_(parts.clock),
      metrics_(parts.metrics),
      batch_size_(metrics_->Get<Metric::kBatchSize>()),
      board_(&engine_->kv(), metrics_),
      loop_(parts.executor, this),
      scheduler_(options.scheduler, &engine_->info(), &engine_->kv()),
      legs_(metrics_) {
  HandoffSender::Options sender;
  sender.instance_id = std::move(options.instance_id);
  sender.transports = std::move(options.transports);
  sender.pools = &engine_->kv();
  sender.device = parts.device;
  sender.clock = clock_;
  sender.metrics = metrics_;
  sender.channels = std::move(options.channels);
  sender.on_finished = [this](HandoffResult result) {
    loop_.Post([this, result = std::move(result)] { Perform(scheduler_.OnHandoffFinished(result)); });
  };
  sender_ = std::make_unique<HandoffSender>(std::move(sender));
}

PrefillWorker::~PrefillWorker() = default;

void PrefillWorker::Start() {
  loop_.Post([this] {
    const WarmUpStep step = WarmUp(engine_, warm_up_rows_, *clock_);
    scheduler_.OnWarmUp(step.rows, step.took);
  });
}

void PrefillWorker::OnRequest(LegId leg, std::shared_ptr<Stream> stream, v1::PrefillRequest request,
                              absl::Time received, absl::Time deadline) {
  const std::shared_ptr<Stream> kept = stream;
  const bool posted = loop_.Post([this, leg, stream = std::move(stream), request = std::move(request),
                                  received, deadline]() mutable {
    legs_.Open(leg, request.attempt().request_id(), std::move(stream));
    PrefillScheduler::Actions actions = scheduler_.OnRequest(leg, request, received, deadline, clock_->Now());
    const bool again = request.attempt().number() > 0 && !scheduler_.phase(leg).empty();
    if (again) metrics_->Get<Metric::kRecomputedTokens>().Increment(request.request().prompt_size());
    Perform(std::move(actions));
  });
  if (!posted) kept->Finish(absl::UnavailableError("this worker has stopped"));
}

void PrefillWorker::OnLegClosed(LegId leg) {
  loop_.Post([this, leg] {
    if (legs_.Closed(leg, scheduler_.phase(leg))) Perform(scheduler_.OnLegClosed(leg));
  });
}

void PrefillWorker::Abort(std::string request_id, std::function<void(absl::StatusOr<bool>)> done) {
  const bool posted = loop_.Post([this, request_id = std::move(request_id), done] {
    PrefillScheduler::Actions actions = scheduler_.OnAbort(request_id);
    const bool found = !actions.empty();
    Perform(std::move(actions));
    done(found);
  });
  if (!posted) done(absl::UnavailableError("this worker has stopped"));
}

bool PrefillWorker::Step() {
  PrefillScheduler::Actions actions;
  const std::optional<StepPlan> plan = scheduler_.StartStep(clock_->Now(), actions);
  Perform(std::move(actions));
  if (!plan) return false;
  batch_size_.Observe(static_cast<double>(plan->sequences.size()));
  const StepResult result =
      engine_->Execute(*plan, [this](LayerRange layers) { Perform(scheduler_.OnLayersDone(layers)); });
  Perform(scheduler_.OnStepDone(result, clock_->Now()));
  return true;
}

absl::Time PrefillWorker::NextTimer() { return std::min(scheduler_.next_timer(), publish_at_); }

void PrefillWorker::OnTimer() { Perform(scheduler_.OnTimer(clock_->Now())); }

void PrefillWorker::OnTurned() {
  publish_at_ = board_.Publish(scheduler_.load()) ? absl::InfiniteFuture() : clock_->Now() + kRepublish;
}

void PrefillWorker::Perform(PrefillScheduler::Actions actions) {
  for (PrefillScheduler::Action& action : actions) {
    std::visit([this](auto& each) { Perform(each); }, action);
  }
}

void PrefillWorker::Perform(PrefillScheduler::SendEvent& action) {
  if (action.event.has_first_token()) {
    metrics_->Get<Metric::kPrefill>().Observe(action.event.first_token().compute_ms() / 1000);
  }
  if (!legs_.Send(action.leg, std::move(action.event))) Perform(scheduler_.OnLegClosed(action.leg));
}

void PrefillWorker::Perform(PrefillScheduler::CloseLeg& action) {
  legs_.Close(action.leg, action.status, "");
}

void PrefillWorker::Perform(PrefillScheduler::StartHandoff& action) {
  sender_->Start(std::move(action.spec), std::move(action.source));
}

void PrefillWorker::Perform(PrefillScheduler::HandoffComputed& action) {
  sender_->Computed(action.transfer_id, action.layers, action.tokens);
}

void PrefillWorker::Perform(PrefillScheduler::HandoffPromptDone& action) {
  sender_->PromptDone(action.transfer_id, std::move(action.first_token));
}

void PrefillWorker::Perform(PrefillScheduler::CancelHandoff& action) { sender_->Cancel(action.transfer_id); }

}  // namespace baton
