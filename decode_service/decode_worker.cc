#include "decode_service/decode_worker.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "engine/warm_up.h"

namespace baton {
namespace {

// How long the figures of draining blocks may be old.
constexpr absl::Duration kRepublish = absl::Milliseconds(100);

std::unique_ptr<HandoffReceiver> MakeReceiver(std::vector<KvBackendKind> transports,
                                              const DecodeWorker::Parts& parts,
                                              std::function<void(landing::Landed)> on_landed,
                                              std::function<void(landing::LandingFailed)> on_failed) {
  HandoffReceiver::Options options;
  options.transports = std::move(transports);
  options.pools = &parts.engine->kv();
  options.device = parts.device;
  options.clock = parts.clock;
  options.metrics = parts.metrics;
  options.on_landed = std::move(on_landed);
  options.on_failed = std::move(on_failed);
  return std::make_unique<HandoffReceiver>(std::move(options));
}

DecodeSchedulerOptions WithTransports(DecodeSchedulerOptions options,
                                      const std::vector<std::string>& transports) {
  options.transports = transports;
  return options;
}

}  // namespace

DecodeWorker::DecodeWorker(Options options, const Parts& parts)
    : warm_up_rows_(options.scheduler.min_chunk_tokens),
      engine_(parts.engine),
      clock_(parts.clock),
      metrics_(parts.metrics),
      batch_size_(metrics_->Get<Metric::kBatchSize>()),
      board_(&engine_->kv(), metrics_),
      loop_(parts.executor, this),
      receiver_(MakeReceiver(
          std::move(options.transports), parts,
          [this](landing::Landed landed) {
            loop_.Post([this, landed = std::move(landed)]() mutable {
              Perform(scheduler_.OnLanded(landed.transfer_id, std::move(landed.kv), landed.first_token,
                                          landed.bytes, landed.transport, clock_->Now()));
            });
          },
          [this](landing::LandingFailed failed) {
            loop_.Post([this, failed = std::move(failed)] {
              Perform(scheduler_.OnLandingFailed(failed.transfer_id, failed.status));
            });
          })),
      scheduler_(WithTransports(std::move(options.scheduler), receiver_->transports()), &engine_->info(),
                 &engine_->kv(), parts.random),
      legs_(metrics_) {}

DecodeWorker::~DecodeWorker() = default;

void DecodeWorker::Start() {
  loop_.Post([this] {
    const WarmUpStep step = WarmUp(engine_, warm_up_rows_, *clock_);
    scheduler_.OnWarmUp(step.rows, step.took);
  });
}

void DecodeWorker::Advertise(std::string address) {
  loop_.Post([this, address = std::move(address)]() mutable {
    scheduler_.set_advertise(std::move(address));
    advertised_ = true;
  });
}

void DecodeWorker::OnRequest(LegId leg, std::shared_ptr<Stream> stream, v1::DecodeRequest request,
                             absl::Time received, absl::Time deadline) {
  const std::shared_ptr<Stream> kept = stream;
  const bool posted =
      loop_.Post([this, leg, stream = std::move(stream), request = std::move(request), received,
                  deadline]() mutable { Begin(leg, std::move(stream), request, received, deadline); });
  if (!posted) kept->Finish(absl::UnavailableError("this worker has stopped"));
}

void DecodeWorker::Begin(LegId leg, std::shared_ptr<Stream> stream, const v1::DecodeRequest& request,
                         absl::Time received, absl::Time deadline) {
  legs_.Open(leg, request.attempt().request_id(), std::move(stream));
  if (!advertised_) {
    legs_.Close(leg, absl::UnavailableError("this worker is starting"), "");
    return;
  }
  DecodeScheduler::Actions actions = scheduler_.OnRequest(leg, request, received, deadline, clock_->Now());
  if (!scheduler_.phase(leg).empty()) {
    const bool prompt_again = request.attempt().number() > 0 && request.has_local();
    const int again = request.request().output_size() + (prompt_again ? request.request().prompt_size() : 0);
    if (again > 0) metrics_->Get<Metric::kRecomputedTokens>().Increment(again);
  }
  Perform(std::move(actions));
}

void DecodeWorker::OnLegClosed(LegId leg) {
  loop_.Post([this, leg] {
    if (legs_.Closed(leg, scheduler_.phase(leg))) Perform(scheduler_.OnLegClosed(leg));
  });
}

void DecodeWorker::Abort(std::string request_id, std::function<void(absl::StatusOr<bool>)> done) {
  const bool posted = loop_.Post([this, request_id = std::move(request_id), done] {
    DecodeScheduler::Actions actions = scheduler_.OnAbort(request_id);
    const bool found = !actions.empty();
    Perform(std::move(actions));
    done(found);
  });
  if (!posted) done(absl::UnavailableError("this worker has stopped"));
}

bool DecodeWorker::Step() {
  const std::optional<StepPlan> plan = scheduler_.StartStep(clock_->Now());
  if (!plan) return false;
  batch_size_.Observe(static_cast<double>(plan->sequences.size()));
  const StepResult result = engine_->Execute(*plan, nullptr);
  Perform(scheduler_.OnStepDone(result, clock_->Now()));
  return true;
}

absl::Time DecodeWorker::NextTimer() { return std::min(scheduler_.next_timer(), publish_at_); }

void DecodeWorker::OnTimer() { Perform(scheduler_.OnTimer(clock_->Now())); }

void DecodeWorker::OnTurned() {
  publish_at_ = board_.Publish(scheduler_.load()) ? absl::InfiniteFuture() : clock_->Now() + kRepublish;
}

void DecodeWorker::Perform(DecodeScheduler::Actions actions) {
  for (DecodeScheduler::Action& action : actions) {
    std::visit([this](auto& each) { Perform(each); }, action);
  }
}

void DecodeWorker::Perform(DecodeScheduler::SendEvent& action) {
  Observe(action.event);
  if (!legs_.Send(action.leg, std::move(action.event))) Perform(scheduler_.OnLegClosed(action.leg));
}

void DecodeWorker::Observe(const v1::DecodeEvent& event) {
  if (event.has_done()) finish_ = event.done().finish() == v1::LEG_FINISH_STOP ? "stop" : "length";
  if (!event.has_tokens()) return;
  const v1::Tokens& tokens = event.tokens();
  if (tokens.has_prefill_compute_ms())
    metrics_->Get<Metric::kPrefill>().Observe(tokens.prefill_compute_ms() / 1000);
  if (tokens.has_decode_queue_ms())
    metrics_->Get<Metric::kDecodeQueue>().Observe(tokens.decode_queue_ms() / 1000);
}

void DecodeWorker::Perform(DecodeScheduler::CloseLeg& action) {
  legs_.Close(action.leg, action.status, std::exchange(finish_, {}));
}

void DecodeWorker::Perform(DecodeScheduler::StartLanding& action) { receiver_->Add(std::move(action.spec)); }

void DecodeWorker::Perform(DecodeScheduler::DropLanding& action) { receiver_->Drop(action.transfer_id); }

}  // namespace baton
