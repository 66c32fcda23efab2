#include "decode_service/decode_scheduler.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/error_details.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/leg_messages.h"
#include "kv_transfer/landing.h"

namespace baton {

struct DecodeScheduler::Job {
  Job(LegId leg, TransferId transfer_id, const v1::DecodeRequest& request, SequenceSpec spec,
      uint32_t vocab_size)
      : leg(leg),
        transfer_id(transfer_id),
        request_id(request.attempt().request_id()),
        prefill_instance_id(request.handoff().prefill_instance_id()),
        replayed(static_cast<uint32_t>(spec.output.size())),
        sequence(std::move(spec), vocab_size) {}

  const LegId leg;
  const TransferId transfer_id;
  const std::string request_id;
  const std::string prefill_instance_id;  // empty for a local prefill
  const uint32_t replayed;                // tokens of the answer that the router already has
  Sequence sequence;
  SequenceKv reserved;  // between reservation and landing or activation
  State state = State::kRunning;
  uint32_t step_rows = 0;  // in the running step; 0: not part of it
  bool ended = false;      // waits only for the running step
  absl::Time deadline;
  absl::Time ready_at;  // the prompt may be computed, or its KV has landed: waits for its first step since
  std::optional<absl::Time> first_step_at;
  std::optional<absl::Duration> prefill_queue;  // of a local prefill, until token 0 reports it
  absl::Time prefill_started;
  bool decoded = false;  // a decode step of this worker has sampled for it
  std::vector<v1::LegToken> prompt_logprobs;
};

DecodeScheduler::DecodeScheduler(const DecodeSchedulerOptions& options, const EngineInfo* info,
                                 KvPools* pools, RandomSource* random)
    : options_(options),
      info_(info),
      pools_(pools),
      random_(random),
      budget_(options.step_target, options.min_chunk_tokens, options.token_budget) {}

DecodeScheduler::~DecodeScheduler() = default;

absl::StatusOr<std::unique_ptr<DecodeScheduler::Job>> DecodeScheduler::MakeJob(
    LegId leg, const v1::DecodeRequest& request, absl::Time deadline, absl::Time now) {
  ASSIGN_OR_RETURN(const TransferId transfer_id, TransferId::FromBytes(request.attempt().transfer_id()));
  if (by_transfer_.contains(transfer_id)) return absl::AlreadyExistsError("this transfer is in flight");
  if (request.source_case() == v1::DecodeRequest::SOURCE_NOT_SET) return InvalidField("source", "is not set");
  ASSIGN_OR_RETURN(SequenceSpec spec, ReadTokenRequest(request.request(), *info_));
  const uint32_t tokens = Sequence::ReservationTokens(spec);
  if (!pools_->Fits(tokens)) {
    return absl::ResourceExhaustedError(StrCat("prompt + max_tokens of ", tokens, " tokens is over the ",
                                               pools_->capacity_tokens(),
                                               " tokens that this worker's KV pool holds"));
  }
  if (jobs_.size() >= options_.max_running) {
    return WithRetryInfo(
        absl::ResourceExhaustedError(StrCat("decode batch is full: ", jobs_.size(), " sequences")),
        options_.step_target);
  }
  absl::StatusOr<SequenceKv> kv = pools_->Reserve(tokens);
  if (!kv.ok()) return WithRetryInfo(kv.status(), options_.step_target);
  auto job = std::make_unique<Job>(leg, transfer_id, request, std::move(spec), info_->vocab_size);
  job->reserved = *std::move(kv);
  job->deadline = deadline;
  job->ready_at = now;
  return job;
}

DecodeScheduler::Actions DecodeScheduler::OnRequest(LegId leg, const v1::DecodeRequest& request,
                                                    absl::Time received, absl::Time deadline,
                                                    absl::Time now) {
  Actions actions;
  absl::StatusOr<std::unique_ptr<Job>> made = MakeJob(leg, request, deadline, now);
  if (!made.ok()) {
    actions.push_back(CloseLeg{leg, made.status()});
    return actions;
  }
  Job& job = **made;
  by_transfer_.emplace(job.transfer_id, leg);
  jobs_.emplace(leg, *std::move(made));
  next_progress_ = std::min(next_progress_, now + options_.progress_interval);

  v1::DecodeEvent event;
  v1::Reserved& reserved = *event.mutable_reserved();
  reserved.set_reserve_ms(absl::ToDoubleMilliseconds(now - received));
  if (request.has_local()) {
    job.reserved.Activate();
    job.sequence.TakeKv(std::move(job.reserved));
  } else {
    job.state = State::kLanding;
    BeginLanding(job, *reserved.mutable_landing(), actions);
  }
  actions.push_back(SendEvent{leg, std::move(event)});
  return actions;
}

void DecodeScheduler::BeginLanding(Job& job, v1::Landing& landing, Actions& actions) {
  LandingSpec spec;
  spec.transfer_id = job.transfer_id;
  spec.ticket = MintTicket(*random_);
  spec.prefill_instance_id = job.prefill_instance_id;
  for (uint32_t group = 0; group < pools_->groups(); ++group) {
    spec.wanted.push_back(pools_->geometry().NeededAfter(group, job.sequence.prompt_tokens()));
  }
  spec.expires = job.deadline;
  landing = MakeLanding(spec.ticket, options_.instance_id, options_.advertise, options_.transports,
                        pools_->geometry(), spec.wanted);
  job.reserved.BeginLanding();
  spec.kv = std::move(job.reserved);
  actions.push_back(StartLanding{std::move(spec)});
}

DecodeScheduler::Job* DecodeScheduler::FindByTransfer(const TransferId& id) {
  const auto it = by_transfer_.find(id);
  return it == by_transfer_.end() ? nullptr : jobs_.at(it->second).get();
}

DecodeScheduler::Actions DecodeScheduler::OnLegClosed(LegId leg) {
  Actions actions;
  const auto it = jobs_.find(leg);
  if (it != jobs_.end() && !it->second->ended) End(*it->second, actions);
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnAbort(const std::string& request_id) {
  Actions actions;
  std::vector<Job*> aborted;
  for (const auto& [leg, job] : jobs_) {
    if (!job->ended && job->request_id == request_id) aborted.push_back(job.get());
  }
  for (Job* job : aborted) Close(*job, absl::AbortedError("aborted by an operator"), actions);
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnLanded(const TransferId& transfer_id, SequenceKv kv,
                                                   const std::optional<v1::LegToken>& first_token,
                                                   uint64_t bytes, const std::string& transport,
                                                   absl::Time now) {
  Actions actions;
  Job* job = FindByTransfer(transfer_id);
  if (job == nullptr || job->ended || job->state != State::kLanding) return actions;
  job->state = State::kRunning;
  kv.Activate();
  job->sequence.TakeKv(std::move(kv));
  job->sequence.OnPromptLanded();
  job->ready_at = now;
  v1::DecodeEvent event;
  event.mutable_landed()->set_kv_bytes(static_cast<double>(bytes));
  event.mutable_landed()->set_transport(transport);
  actions.push_back(SendEvent{job->leg, std::move(event)});
  const bool wants_token = job->replayed == 0;
  if (wants_token != first_token.has_value() || (wants_token && first_token->id() >= info_->vocab_size)) {
    Close(*job,
          absl::InternalError("the handoff's first token is missing, unasked for or outside the vocabulary"),
          actions);
    return actions;
  }
  if (wants_token) {
    job->sequence.Append(first_token->id());
    SendTokens(*job, *first_token, now, actions);
    EndIfFinished(*job, actions);
  }
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnLandingFailed(const TransferId& transfer_id,
                                                          const absl::Status& status) {
  Actions actions;
  Job* job = FindByTransfer(transfer_id);
  if (job == nullptr || job->ended || job->state != State::kLanding) return actions;
  job->state = State::kRunning;  // the transfer side has nothing of it any more
  Close(*job, WithErrorInfo(status, "HANDOFF_FAILED", {{"peer", job->prefill_instance_id}}), actions);
  return actions;
}

std::optional<StepPlan> DecodeScheduler::StartStep(absl::Time now) {
  if (!step_.empty()) return std::nullopt;
  std::vector<Job*> running;
  std::vector<PlannedSequence> planned;
  for (auto& [leg, job] : jobs_) {
    if (job->state != State::kRunning) continue;
    running.push_back(job.get());
    planned.push_back(job->sequence.Planned());
  }
  // A row for each sequence, however slow steps are: those that arrived last would otherwise wait for the
  // others to end.
  const uint32_t budget = std::max(budget_.budget(), static_cast<uint32_t>(running.size()));
  const std::vector<uint32_t> rows = PlanRows(
      planned,
      {.token_budget = budget, .chunk_tokens = std::min(options_.chunk_tokens, pools_->max_step_tokens())});
  StepPlan plan;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;
    Job* job = running[i];
    if (!job->sequence.prompt_computed() && !job->prefill_queue) {
      job->prefill_queue = now - job->ready_at;
      job->prefill_started = now;
    } else if (job->sequence.prompt_computed() && !job->first_step_at) {
      job->first_step_at = now;
    }
    job->step_rows = rows[i];
    step_.push_back(job);
    plan.sequences.push_back(job->sequence.MakeStep(rows[i], /*may_sample=*/true));
  }
  if (step_.empty()) return std::nullopt;
  step_started_ = now;
  batch_size_ = static_cast<uint32_t>(step_.size());
  return plan;
}

DecodeScheduler::Actions DecodeScheduler::OnStepDone(const StepResult& result, absl::Time now) {
  BATON_CHECK(result.sequences.size() == step_.size());
  Actions actions;
  ++steps_;
  uint32_t rows = 0;
  const std::vector<Job*> step = std::exchange(step_, {});
  for (size_t i = 0; i < step.size(); ++i) {
    rows += step[i]->step_rows;
    OnRowsDone(*step[i], result.sequences[i], now, actions);
  }
  budget_.OnStep(rows, now - step_started_);
  return actions;
}

void DecodeScheduler::OnRowsDone(Job& job, const SequenceResult& result, absl::Time now, Actions& actions) {
  const bool prefilled = !job.sequence.prompt_computed();
  job.sequence.OnStepDone(std::exchange(job.step_rows, 0), result.sampled);
  if (prefilled && job.sequence.prompt_computed()) job.ready_at = now;
  if (job.ended) {
    End(job, actions);
    return;
  }
  for (const SampledToken& token : result.prompt_logprobs)
    job.prompt_logprobs.push_back(WriteToken(token, true));
  if (!result.sampled) return;
  SendTokens(job, WriteToken(*result.sampled, job.sequence.spec().logprobs.has_value()), now, actions);
  EndIfFinished(job, actions);
}

void DecodeScheduler::SendTokens(Job& job, v1::LegToken token, absl::Time now, Actions& actions) {
  v1::DecodeEvent event;
  v1::Tokens& tokens = *event.mutable_tokens();
  tokens.set_index(job.sequence.output_tokens() - 1);
  *tokens.add_tokens() = std::move(token);
  if (job.first_step_at) {
    if (!std::exchange(job.decoded, true)) {
      tokens.set_decode_queue_ms(absl::ToDoubleMilliseconds(*job.first_step_at - job.ready_at));
      tokens.set_step_ms(absl::ToDoubleMilliseconds(now - *job.first_step_at));
    }
  } else if (job.prefill_queue) {
    tokens.set_prefill_queue_ms(absl::ToDoubleMilliseconds(*job.prefill_queue));
    tokens.set_prefill_compute_ms(absl::ToDoubleMilliseconds(now - job.prefill_started));
    tokens.mutable_prompt_logprobs()->Assign(job.prompt_logprobs.begin(), job.prompt_logprobs.end());
  }
  actions.push_back(SendEvent{job.leg, std::move(event)});
}

void DecodeScheduler::EndIfFinished(Job& job, Actions& actions) {
  const Sequence::Finish finish = job.sequence.finish();
  if (finish == Sequence::Finish::kNone) return;
  v1::DecodeEvent event;
  event.mutable_done()->set_finish(finish == Sequence::Finish::kStop ? v1::LEG_FINISH_STOP
                                                                     : v1::LEG_FINISH_LENGTH);
  actions.push_back(SendEvent{job.leg, std::move(event)});
  Close(job, absl::OkStatus(), actions);
}

void DecodeScheduler::Close(Job& job, absl::Status status, Actions& actions) {
  actions.push_back(CloseLeg{job.leg, std::move(status)});
  End(job, actions);
}

void DecodeScheduler::End(Job& job, Actions& actions) {
  if (job.state == State::kLanding) {
    actions.push_back(DropLanding{job.transfer_id});
    job.state = State::kRunning;
  }
  job.ended = true;
  if (job.step_rows > 0) return;
  by_transfer_.erase(job.transfer_id);
  jobs_.erase(job.leg);
}

absl::Time DecodeScheduler::next_timer() const {
  absl::Time next = jobs_.empty() ? absl::InfiniteFuture() : next_progress_;
  for (const auto& [leg, job] : jobs_) {
    if (!job->ended) next = std::min(next, job->deadline);
  }
  return next;
}

DecodeScheduler::Actions DecodeScheduler::OnTimer(absl::Time now) {
  Actions actions;
  std::vector<Job*> late;
  for (auto& [leg, job] : jobs_) {
    if (!job->ended && job->deadline <= now) late.push_back(job.get());
  }
  for (Job* job : late) Close(*job, absl::DeadlineExceededError("the leg's time is up"), actions);
  if (now >= next_progress_) {
    for (const auto& [leg, job] : jobs_) {
      if (job->ended) continue;
      v1::DecodeEvent event;
      event.mutable_progress()->set_steps(static_cast<double>(steps_));
      event.mutable_progress()->set_computed_tokens(job->sequence.computed());
      actions.push_back(SendEvent{leg, std::move(event)});
    }
    next_progress_ = jobs_.empty() ? absl::InfiniteFuture() : now + options_.progress_interval;
  }
  return actions;
}

std::string_view DecodeScheduler::phase(LegId leg) const {
  const auto it = jobs_.find(leg);
  if (it == jobs_.end() || it->second->ended) return "";
  if (it->second->state == State::kLanding) return "landing";
  return it->second->sequence.prompt_computed() ? "decoding" : "prefilling";
}

WorkerLoad DecodeScheduler::load() const {
  WorkerLoad load;
  for (const auto& [leg, job] : jobs_) {
    if (job->state == State::kLanding) {
      ++load.waiting;
    } else {
      ++load.running;
    }
    if (job->state == State::kRunning && !job->sequence.prompt_computed()) {
      load.waiting_tokens += job->sequence.prompt_tokens() - job->sequence.computed();
    }
  }
  load.batch_size = batch_size_;
  load.steps = steps_;
  return load;
}

absl::Status DecodeScheduler::CheckInvariants() const {
  if (by_transfer_.size() != jobs_.size()) return absl::InternalError("jobs and transfers differ in number");
  if (jobs_.size() > options_.max_running)
    return absl::InternalError("more sequences than the batch may hold");
  for (const auto& [leg, job] : jobs_) {
    if (!job->ended && (job->state == State::kLanding) != job->sequence.kv().empty()) {
      return absl::InternalError(StrCat("leg ", leg, " has its blocks while they land, or runs without"));
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
