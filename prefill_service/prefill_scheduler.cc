#include "prefill_service/prefill_scheduler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/check.h"
#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/str_cat.h"
#include "engine/leg_messages.h"

namespace baton {
namespace {

// After OnHandBack: a handoff under way may complete, so that nobody computes its prompt again.
constexpr absl::Duration kPushGrace = absl::Milliseconds(500);

absl::Status Draining() {
  return WithErrorInfo(absl::UnavailableError("this worker drains"), kReasonDraining);
}

}  // namespace

struct PrefillScheduler::PrefillJob : Job {
  using Job::Job;

  v1::Landing landing;
  State state = State::kQueued;
  bool handoff_open = false;  // the transfer side still has it
  absl::Time queued_at;
  absl::Time computing_at;
  std::vector<v1::LegToken> prompt_logprobs;
};

PrefillScheduler::PrefillScheduler(const PrefillSchedulerOptions& options, const EngineInfo* info,
                                   KvPools* pools)
    : options_(options),
      info_(info),
      pools_(pools),
      jobs_({.token_budget = options.token_budget,
             .min_chunk_tokens = options.min_chunk_tokens,
             .chunk_tokens = std::min(options.chunk_tokens, pools->max_step_tokens()),
             .step_target = options.step_target,
             .progress_interval = options.progress_interval}) {}

PrefillScheduler::~PrefillScheduler() = default;

PrefillScheduler::Actions PrefillScheduler::Refuse(LegId leg, absl::Status status) {
  Actions actions;
  actions.emplace_back(CloseLeg{leg, std::move(status), ""});
  return actions;
}

std::vector<PrefillScheduler::PrefillJob*> PrefillScheduler::InState(State state) const {
  return jobs_.All([state](const PrefillJob& job) { return job.state == state; });
}

PrefillScheduler::Actions PrefillScheduler::OnRequest(LegId leg, const v1::PrefillRequest& request,
                                                      absl::Time received, absl::Time deadline,
                                                      absl::Time now) {
  absl::StatusOr<TransferId> transfer_id = TransferId::FromBytes(request.attempt().transfer_id());
  if (!transfer_id.ok()) return Refuse(leg, transfer_id.status());
  if (jobs_.Knows(*transfer_id)) return Refuse(leg, absl::AlreadyExistsError("this transfer is in flight"));
  absl::StatusOr<SequenceSpec> spec = ReadTokenRequest(request.request(), *info_);
  if (!spec.ok()) return Refuse(leg, spec.status());
  if (!pools_->Fits(static_cast<uint32_t>(spec->prompt.size()))) {
    return Refuse(leg, absl::ResourceExhaustedError(StrCat("prompt of ", spec->prompt.size(),
                                                           " tokens is over the ", pools_->capacity_tokens(),
                                                           " tokens that this worker's KV pool holds")));
  }
  const size_t waiting = InState(State::kQueued).size();
  if (waiting >= options_.max_waiting) {
    return Refuse(
        leg,
        WithRetryInfo(absl::ResourceExhaustedError(StrCat("prefill queue is full: ", waiting, " prompts")),
                      options_.step_target));
  }
  // Accepted tokens are replayed by decode; here they only mean that token 0 exists already.
  const bool samples = spec->output.empty();
  spec->output.clear();
  auto job = std::make_unique<PrefillJob>(leg, *transfer_id, request.attempt().request_id(), deadline,
                                          *std::move(spec), info_->vocab_size);
  job->landing = request.landing();
  job->may_sample = samples;
  job->queued_at = received;
  jobs_.Add(std::move(job), now);
  return {};
}

PrefillScheduler::Actions PrefillScheduler::OnLegClosed(LegId leg) {
  Actions actions;
  if (PrefillJob* job = jobs_.Find(leg)) End(*job, actions);
  return actions;
}

PrefillScheduler::Actions PrefillScheduler::OnAbort(const std::string& request_id) {
  Actions actions;
  for (PrefillJob* job : jobs_.OfRequest(request_id)) {
    Close(*job, absl::AbortedError("aborted by an operator"), actions);
  }
  return actions;
}

PrefillScheduler::Actions PrefillScheduler::OnHandoffFinished(const HandoffResult& result) {
  Actions actions;
  PrefillJob* job = jobs_.Find(result.transfer_id);
  if (job == nullptr) return actions;  // a late notice of a job that is gone
  job->handoff_open = false;
  if (!result.status.ok()) {
    Close(*job, WithErrorInfo(result.status, kReasonHandoffFailed, {{"peer", job->landing.instance_id()}}),
          actions);
    return actions;
  }
  BATON_CHECK(job->state == State::kPushing);
  v1::PrefillEvent event;
  event.mutable_done()->set_handoff_ms(absl::ToDoubleMilliseconds(result.handoff));
  event.mutable_done()->set_kv_bytes(static_cast<double>(result.bytes));
  event.mutable_done()->set_transport(result.transport);
  actions.emplace_back(SendEvent{job->leg, std::move(event)});
  Close(*job, absl::OkStatus(), actions);
  return actions;
}

PrefillScheduler::Actions PrefillScheduler::OnHandBack(absl::Time now) {
  hand_back_at_ = now + kPushGrace;
  Actions actions;
  for (PrefillJob* job : jobs_.All()) {
    if (job->state != State::kPushing) Close(*job, Draining(), actions);
  }
  return actions;
}

void PrefillScheduler::Admit(absl::Time now, Actions& actions) {
  const std::vector<PrefillJob*> queued = InState(State::kQueued);
  size_t holding = jobs_.size() - queued.size();
  for (PrefillJob* job : queued) {
    if (holding >= options_.max_running) return;
    // The oldest waits for its blocks, and the others behind it, so that a long prompt is not passed over for
    // ever.
    absl::StatusOr<SequenceKv> kv = pools_->Reserve(job->sequence.prompt_tokens());
    if (!kv.ok()) return;
    kv->Activate();
    job->sequence.TakeKv(*std::move(kv));
    job->state = State::kComputing;
    job->computing_at = now;
    job->handoff_open = true;
    ++holding;
    actions.push_back(
        StartHandoff{{job->transfer_id, job->landing, job->sequence.prompt_tokens(), job->deadline},
                     PinnedKv::Of(job->sequence.kv())});
  }
}

std::optional<StepPlan> PrefillScheduler::StartStep(absl::Time now, Actions& actions) {
  if (jobs_.stepping()) return std::nullopt;
  Admit(now, actions);
  return jobs_.StartStep(InState(State::kComputing), /*least_rows=*/1, now);
}

PrefillScheduler::Actions PrefillScheduler::OnLayersDone(LayerRange layers) {
  Actions actions;
  for (const PrefillJob* job : jobs_.step()) {
    if (job->ended) continue;
    const uint32_t begin = job->sequence.computed();
    actions.emplace_back(HandoffComputed{job->transfer_id, layers, {begin, begin + job->step_rows}});
  }
  return actions;
}

PrefillScheduler::Actions PrefillScheduler::OnStepDone(const StepResult& result, absl::Time now) {
  Actions actions;
  for (const auto& [job, own] : jobs_.FinishStep(result, now)) {
    for (const SampledToken& token : own->prompt_logprobs) {
      job->prompt_logprobs.push_back(WriteToken(token, true));
    }
    if (job->sequence.prompt_computed()) FinishPrompt(*job, *own, now, actions);
  }
  return actions;
}

void PrefillScheduler::FinishPrompt(PrefillJob& job, const SequenceResult& result, absl::Time now,
                                    Actions& actions) {
  job.state = State::kPushing;
  v1::PrefillEvent event;
  v1::FirstToken& first = *event.mutable_first_token();
  v1::LandCommit commit;
  if (job.may_sample) {
    BATON_CHECK(result.sampled.has_value());
    *first.mutable_token() = WriteToken(*result.sampled, job.sequence.spec().logprobs.has_value());
    *commit.mutable_first_token() = first.token();
  }
  first.mutable_prompt_logprobs()->Assign(job.prompt_logprobs.begin(), job.prompt_logprobs.end());
  first.set_queue_ms(absl::ToDoubleMilliseconds(job.computing_at - job.queued_at));
  first.set_compute_ms(absl::ToDoubleMilliseconds(now - job.computing_at));
  first.set_cached_tokens(0);
  commit.set_prefill_queue_ms(first.queue_ms());
  commit.set_prefill_compute_ms(first.compute_ms());
  actions.emplace_back(SendEvent{job.leg, std::move(event)});
  actions.emplace_back(HandoffPromptDone{job.transfer_id, std::move(commit)});
}

void PrefillScheduler::Close(PrefillJob& job, absl::Status status, Actions& actions) {
  actions.emplace_back(CloseLeg{job.leg, std::move(status), ""});
  End(job, actions);
}

void PrefillScheduler::End(PrefillJob& job, Actions& actions) {
  if (std::exchange(job.handoff_open, false)) actions.emplace_back(CancelHandoff{job.transfer_id});
  jobs_.End(job);
}

absl::Time PrefillScheduler::next_timer() const {
  const absl::Time next = jobs_.next_timer();
  return jobs_.All().empty() ? next : std::min(next, hand_back_at_);
}

PrefillScheduler::Actions PrefillScheduler::OnTimer(absl::Time now) {
  Actions actions;
  for (PrefillJob* job : jobs_.Late(now)) {
    Close(*job, absl::DeadlineExceededError("the leg's time is up"), actions);
  }
  if (now >= hand_back_at_) {
    for (PrefillJob* job : jobs_.All()) Close(*job, Draining(), actions);
  }
  if (!jobs_.TakeProgressDue(now)) return actions;
  for (const PrefillJob* job : jobs_.All()) {
    v1::PrefillEvent event;
    *event.mutable_progress() = jobs_.ProgressOf(*job);
    actions.emplace_back(SendEvent{job->leg, std::move(event)});
  }
  return actions;
}

std::string_view PrefillScheduler::phase(LegId leg) const {
  const PrefillJob* job = jobs_.Find(leg);
  if (job == nullptr) return "";
  switch (job->state) {
    case State::kQueued:
      return "queued";
    case State::kComputing:
      return "computing";
    case State::kPushing:
      return "pushing";
  }
  BATON_CHECK(false);
}

WorkerLoad PrefillScheduler::load() const {
  WorkerLoad load = jobs_.load();
  for (const PrefillJob* job : jobs_.All()) {
    if (job->state == State::kQueued) ++load.waiting;
    if (job->state == State::kComputing) ++load.running;
    load.waiting_tokens += job->sequence.prompt_left();
  }
  return load;
}

absl::Status PrefillScheduler::CheckInvariants() const {
  for (const PrefillJob* job : jobs_.All()) {
    if ((job->state == State::kQueued) != job->sequence.kv().empty()) {
      return absl::InternalError(
          StrCat("leg ", job->leg, " is queued and holds blocks, or is not and holds none"));
    }
  }
  return jobs_.CheckInvariants();
}

}  // namespace baton
