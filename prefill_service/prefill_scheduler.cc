#include "prefill_service/prefill_scheduler.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/error_details.h"
#include "common/str_cat.h"
#include "engine/leg_messages.h"

namespace baton {

struct PrefillScheduler::Job {
  Job(LegId leg, TransferId transfer_id, std::string request_id, SequenceSpec spec, uint32_t vocab_size)
      : leg(leg),
        transfer_id(transfer_id),
        request_id(std::move(request_id)),
        sequence(std::move(spec), vocab_size) {}

  const LegId leg;
  const TransferId transfer_id;
  const std::string request_id;
  v1::Landing landing;
  Sequence sequence;
  bool samples_first_token = true;
  State state = State::kQueued;
  uint32_t step_rows = 0;     // in the running step; 0: not part of it
  bool handoff_open = false;  // the transfer side still has it
  bool ended = false;         // waits only for the running step
  absl::Time deadline;
  absl::Time queued_at;
  absl::Time computing_at;
  std::vector<v1::LegToken> prompt_logprobs;
};

PrefillScheduler::PrefillScheduler(const PrefillSchedulerOptions& options, const EngineInfo* info,
                                   KvPools* pools)
    : options_(options),
      info_(info),
      pools_(pools),
      budget_(options.step_target, options.min_chunk_tokens, options.token_budget) {}

PrefillScheduler::~PrefillScheduler() = default;

PrefillScheduler::Actions PrefillScheduler::OnRequest(LegId leg, const v1::PrefillRequest& request,
                                                      absl::Time received, absl::Time deadline,
                                                      absl::Time now) {
  const auto refuse = [leg](absl::Status status) {
    Actions actions;
    actions.push_back(CloseLeg{leg, std::move(status)});
    return actions;
  };
  absl::StatusOr<TransferId> transfer_id = TransferId::FromBytes(request.attempt().transfer_id());
  if (!transfer_id.ok()) return refuse(transfer_id.status());
  if (by_transfer_.contains(*transfer_id))
    return refuse(absl::AlreadyExistsError("this transfer is in flight"));
  absl::StatusOr<SequenceSpec> spec = ReadTokenRequest(request.request(), *info_);
  if (!spec.ok()) return refuse(spec.status());
  if (!pools_->Fits(static_cast<uint32_t>(spec->prompt.size()))) {
    return refuse(absl::ResourceExhaustedError(StrCat("prompt of ", spec->prompt.size(),
                                                      " tokens is over the ", pools_->capacity_tokens(),
                                                      " tokens that this worker's KV pool holds")));
  }
  const uint32_t waiting = load().waiting;
  if (waiting >= options_.max_waiting) {
    return refuse(
        WithRetryInfo(absl::ResourceExhaustedError(StrCat("prefill queue is full: ", waiting, " prompts")),
                      options_.step_target));
  }
  // Accepted tokens are replayed by decode; here they only mean that token 0 exists already.
  const bool samples = spec->output.empty();
  spec->output.clear();
  auto job = std::make_unique<Job>(leg, *transfer_id, request.attempt().request_id(), *std::move(spec),
                                   info_->vocab_size);
  job->landing = request.landing();
  job->samples_first_token = samples;
  job->deadline = deadline;
  job->queued_at = received;
  by_transfer_.emplace(*transfer_id, leg);
  jobs_.emplace(leg, std::move(job));
  next_progress_ = std::min(next_progress_, now + options_.progress_interval);
  return {};
}

PrefillScheduler::Actions PrefillScheduler::OnLegClosed(LegId leg) {
  Actions actions;
  const auto it = jobs_.find(leg);
  if (it != jobs_.end() && !it->second->ended) End(*it->second, actions);
  return actions;
}

PrefillScheduler::Actions PrefillScheduler::OnAbort(const std::string& request_id) {
  Actions actions;
  std::vector<Job*> aborted;
  for (const auto& [leg, job] : jobs_) {
    if (!job->ended && job->request_id == request_id) aborted.push_back(job.get());
  }
  for (Job* job : aborted) Close(*job, absl::AbortedError("aborted by an operator"), actions);
  return actions;
}

PrefillScheduler::Job* PrefillScheduler::FindByTransfer(const TransferId& id) {
  const auto it = by_transfer_.find(id);
  return it == by_transfer_.end() ? nullptr : jobs_.at(it->second).get();
}

PrefillScheduler::Actions PrefillScheduler::OnHandoffFinished(const HandoffResult& result) {
  Actions actions;
  Job* job = FindByTransfer(result.transfer_id);
  if (job == nullptr || job->ended) return actions;  // a late notice of a job that is gone
  job->handoff_open = false;
  if (!result.status.ok()) {
    Close(*job, WithErrorInfo(result.status, "HANDOFF_FAILED", {{"peer", job->landing.instance_id()}}),
          actions);
    return actions;
  }
  BATON_CHECK(job->state == State::kPushing);
  v1::PrefillEvent event;
  event.mutable_done()->set_handoff_ms(absl::ToDoubleMilliseconds(result.handoff));
  event.mutable_done()->set_kv_bytes(static_cast<double>(result.bytes));
  event.mutable_done()->set_transport(result.transport);
  actions.push_back(SendEvent{job->leg, std::move(event)});
  Close(*job, absl::OkStatus(), actions);
  return actions;
}

void PrefillScheduler::Admit(absl::Time now, Actions& actions) {
  uint32_t holding = 0;
  for (const auto& [leg, job] : jobs_) holding += job->state != State::kQueued;
  for (auto& [leg, job] : jobs_) {
    if (job->state != State::kQueued) continue;
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
  if (!step_.empty()) return std::nullopt;
  Admit(now, actions);
  std::vector<Job*> computing;
  std::vector<PlannedSequence> planned;
  for (auto& [leg, job] : jobs_) {
    if (job->state != State::kComputing) continue;
    computing.push_back(job.get());
    planned.push_back(job->sequence.Planned());
  }
  const std::vector<uint32_t> rows =
      PlanRows(planned, {.token_budget = budget_.budget(),
                         .chunk_tokens = std::min(options_.chunk_tokens, pools_->max_step_tokens())});
  StepPlan plan;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;
    Job* job = computing[i];
    job->step_rows = rows[i];
    step_.push_back(job);
    plan.sequences.push_back(job->sequence.MakeStep(rows[i], job->samples_first_token));
  }
  if (step_.empty()) return std::nullopt;
  step_started_ = now;
  batch_size_ = static_cast<uint32_t>(step_.size());
  return plan;
}

PrefillScheduler::Actions PrefillScheduler::OnLayersDone(LayerRange layers) {
  Actions actions;
  for (const Job* job : step_) {
    if (job->ended) continue;
    const uint32_t begin = job->sequence.computed();
    actions.push_back(HandoffComputed{job->transfer_id, layers, {begin, begin + job->step_rows}});
  }
  return actions;
}

PrefillScheduler::Actions PrefillScheduler::OnStepDone(const StepResult& result, absl::Time now) {
  BATON_CHECK(result.sequences.size() == step_.size());
  Actions actions;
  ++steps_;
  uint32_t rows = 0;
  const std::vector<Job*> step = std::exchange(step_, {});
  for (size_t i = 0; i < step.size(); ++i) {
    Job& job = *step[i];
    rows += job.step_rows;
    job.sequence.OnStepDone(std::exchange(job.step_rows, 0), result.sequences[i].sampled);
    if (job.ended) {
      End(job, actions);
      continue;
    }
    for (const SampledToken& token : result.sequences[i].prompt_logprobs) {
      job.prompt_logprobs.push_back(WriteToken(token, true));
    }
    if (job.sequence.prompt_computed()) FinishPrompt(job, result.sequences[i], now, actions);
  }
  budget_.OnStep(rows, now - step_started_);
  return actions;
}

void PrefillScheduler::FinishPrompt(Job& job, const SequenceResult& result, absl::Time now,
                                    Actions& actions) {
  job.state = State::kPushing;
  v1::PrefillEvent event;
  v1::FirstToken& first = *event.mutable_first_token();
  std::optional<v1::LegToken> token;
  if (job.samples_first_token) {
    BATON_CHECK(result.sampled.has_value());
    token = WriteToken(*result.sampled, job.sequence.spec().logprobs.has_value());
    *first.mutable_token() = *token;
  }
  first.mutable_prompt_logprobs()->Assign(job.prompt_logprobs.begin(), job.prompt_logprobs.end());
  first.set_queue_ms(absl::ToDoubleMilliseconds(job.computing_at - job.queued_at));
  first.set_compute_ms(absl::ToDoubleMilliseconds(now - job.computing_at));
  first.set_cached_tokens(0);
  actions.push_back(SendEvent{job.leg, std::move(event)});
  actions.push_back(HandoffPromptDone{job.transfer_id, std::move(token)});
}

void PrefillScheduler::Close(Job& job, absl::Status status, Actions& actions) {
  actions.push_back(CloseLeg{job.leg, std::move(status)});
  End(job, actions);
}

void PrefillScheduler::End(Job& job, Actions& actions) {
  if (std::exchange(job.handoff_open, false)) actions.push_back(CancelHandoff{job.transfer_id});
  job.ended = true;
  if (job.step_rows > 0) return;
  by_transfer_.erase(job.transfer_id);
  jobs_.erase(job.leg);
}

absl::Time PrefillScheduler::next_timer() const {
  absl::Time next = jobs_.empty() ? absl::InfiniteFuture() : next_progress_;
  for (const auto& [leg, job] : jobs_) {
    if (!job->ended) next = std::min(next, job->deadline);
  }
  return next;
}

PrefillScheduler::Actions PrefillScheduler::OnTimer(absl::Time now) {
  Actions actions;
  std::vector<Job*> late;
  for (auto& [leg, job] : jobs_) {
    if (!job->ended && job->deadline <= now) late.push_back(job.get());
  }
  for (Job* job : late) Close(*job, absl::DeadlineExceededError("the leg's time is up"), actions);
  if (now >= next_progress_) {
    for (const auto& [leg, job] : jobs_) {
      if (job->ended) continue;
      v1::PrefillEvent event;
      event.mutable_progress()->set_steps(static_cast<double>(steps_));
      event.mutable_progress()->set_computed_tokens(job->sequence.computed());
      actions.push_back(SendEvent{leg, std::move(event)});
    }
    next_progress_ = jobs_.empty() ? absl::InfiniteFuture() : now + options_.progress_interval;
  }
  return actions;
}

std::string_view PrefillScheduler::phase(LegId leg) const {
  const auto it = jobs_.find(leg);
  if (it == jobs_.end() || it->second->ended) return "";
  switch (it->second->state) {
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
  WorkerLoad load;
  for (const auto& [leg, job] : jobs_) {
    if (job->state == State::kQueued) ++load.waiting;
    if (job->state == State::kComputing) ++load.running;
    load.waiting_tokens +=
        job->sequence.prompt_tokens() - std::min(job->sequence.computed(), job->sequence.prompt_tokens());
  }
  load.batch_size = batch_size_;
  load.steps = steps_;
  return load;
}

absl::Status PrefillScheduler::CheckInvariants() const {
  if (by_transfer_.size() != jobs_.size()) return absl::InternalError("jobs and transfers differ in number");
  for (const auto& [leg, job] : jobs_) {
    if ((job->state == State::kQueued) != job->sequence.kv().empty()) {
      return absl::InternalError(
          StrCat("leg ", leg, " is queued and holds blocks, or is not and holds none"));
    }
    const bool in_step = std::find(step_.begin(), step_.end(), job.get()) != step_.end();
    if (in_step != (job->step_rows > 0))
      return absl::InternalError(StrCat("leg ", leg, " disagrees with the step"));
    if (job->ended && !in_step)
      return absl::InternalError(StrCat("leg ", leg, " has ended and is still here"));
  }
  return absl::OkStatus();
}

}  // namespace baton
