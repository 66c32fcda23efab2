#include "decode_service/decode_scheduler.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "common/check.h"
#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/leg_messages.h"
#include "kv_transfer/landing.h"

namespace baton {

struct DecodeScheduler::DecodeJob : Job {
  using Job::Job;

  std::string prefill_instance_id;  // empty for a local prefill
  std::string prefill_identity;     // empty in plaintext
  int32_t priority = 0;
  State state = State::kRunning;
  uint32_t room_tokens = 0;  // that its blocks are enough for
  uint32_t preemptions = 0;
  uint32_t dropped_tokens = 0;  // of KV, by the latest preemption
  absl::Time ready_at;  // the prompt may be computed, or its KV has landed: waits for its first step since
  std::optional<absl::Time> first_step_at;
  std::optional<absl::Duration> prefill_queue;  // of a local prefill
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
      jobs_({.token_budget = options.token_budget,
             .min_chunk_tokens = options.min_chunk_tokens,
             .chunk_tokens = std::min(options.chunk_tokens, pools->max_step_tokens()),
             .step_target = options.step_target,
             .progress_interval = options.progress_interval}) {}

DecodeScheduler::~DecodeScheduler() = default;

absl::StatusOr<std::unique_ptr<DecodeScheduler::DecodeJob>> DecodeScheduler::MakeJob(
    LegId leg, const v1::DecodeRequest& request, absl::Time deadline, absl::Time now) {
  ASSIGN_OR_RETURN(const TransferId transfer_id, TransferId::FromBytes(request.attempt().transfer_id()));
  if (jobs_.Knows(transfer_id)) return absl::AlreadyExistsError("this transfer is in flight");
  if (request.source_case() == v1::DecodeRequest::SOURCE_NOT_SET) return InvalidField("source", "is not set");
  ASSIGN_OR_RETURN(SequenceSpec spec, ReadTokenRequest(request.request(), *info_));
  const uint32_t tokens = static_cast<uint32_t>(spec.prompt.size()) + spec.max_tokens;
  if (!pools_->Fits(tokens)) {
    return absl::ResourceExhaustedError(StrCat("prompt + max_tokens of ", tokens, " tokens is over the ",
                                               pools_->capacity_tokens(),
                                               " tokens that this worker's KV pool holds"));
  }
  if (options_.advertise.empty() && request.has_handoff())
    return absl::UnavailableError("this worker is starting");
  if (jobs_.size() >= options_.max_running) {
    return WithRetryInfo(
        absl::ResourceExhaustedError(StrCat("decode batch is full: ", jobs_.size(), " sequences")),
        options_.step_target);
  }
  auto job = std::make_unique<DecodeJob>(leg, transfer_id, request.attempt().request_id(), deadline,
                                         std::move(spec), info_->vocab_size);
  job->prefill_instance_id = request.handoff().prefill_instance_id();
  job->prefill_identity = request.handoff().prefill_identity();
  job->priority = request.priority();
  job->ready_at = now;
  return job;
}

bool DecodeScheduler::RanksBefore(const DecodeJob& a, const DecodeJob& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.leg < b.leg;
}

std::vector<DecodeScheduler::DecodeJob*> DecodeScheduler::Ranked(State state) const {
  std::vector<DecodeJob*> jobs = jobs_.All([state](const DecodeJob& job) { return job.state == state; });
  std::sort(jobs.begin(), jobs.end(),
            [](const DecodeJob* a, const DecodeJob* b) { return RanksBefore(*a, *b); });
  return jobs;
}

uint32_t DecodeScheduler::ReserveTokens(const DecodeJob& job) const {
  constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();
  if (options_.reserve_tokens == 0 || job.preemptions >= 32) return kAll;
  return static_cast<uint32_t>(
      std::min<uint64_t>(uint64_t{options_.reserve_tokens} << job.preemptions, kAll));
}

absl::StatusOr<SequenceKv> DecodeScheduler::Reserve(DecodeJob& job) {
  const uint32_t ahead = ReserveTokens(job);
  const uint32_t tokens = job.sequence.TokensAfter(ahead);
  // What those before it may yet need is left to them.
  std::vector<uint64_t> needed(pools_->groups());
  for (const DecodeJob* other : jobs_.All()) {
    if (other->state == State::kPreempted || !RanksBefore(*other, job)) continue;
    const std::vector<uint32_t> held = pools_->BlocksFor(other->room_tokens);
    const std::vector<uint32_t> later = pools_->BlocksFor(other->sequence.TokensAfter(ahead));
    for (uint32_t group = 0; group < needed.size(); ++group) {
      needed[group] += later[group] - std::min(held[group], later[group]);
    }
  }
  const std::vector<uint32_t> own = pools_->BlocksFor(tokens);
  for (uint32_t group = 0; group < needed.size(); ++group) {
    const uint32_t free = pools_->pool(group).counts()[BlockState::kFree];
    if (own[group] + needed[group] > free) {
      return absl::ResourceExhaustedError(StrCat("cache group ", group, ": ", free, " blocks are free, ",
                                                 own[group], " are needed and ", needed[group],
                                                 " kept for sequences that came before"));
    }
  }
  ASSIGN_OR_RETURN(SequenceKv kv, pools_->Reserve(tokens));
  job.room_tokens = tokens;
  return kv;
}

DecodeScheduler::Actions DecodeScheduler::OnRequest(LegId leg, const v1::DecodeRequest& request,
                                                    absl::Time received, absl::Time deadline,
                                                    absl::Time now) {
  Actions actions;
  absl::StatusOr<std::unique_ptr<DecodeJob>> made = MakeJob(leg, request, deadline, now);
  if (!made.ok()) {
    actions.emplace_back(CloseLeg{leg, made.status(), ""});
    return actions;
  }
  absl::StatusOr<SequenceKv> kv =
      absl::ResourceExhaustedError("sequences that came before wait for KV blocks");
  if (Ranked(State::kPreempted).empty()) kv = Reserve(**made);
  if (!kv.ok()) {
    actions.emplace_back(CloseLeg{leg, WithRetryInfo(kv.status(), options_.step_target), ""});
    return actions;
  }
  DecodeJob& job = jobs_.Add(*std::move(made), now);
  v1::DecodeEvent event;
  v1::Reserved& reserved = *event.mutable_reserved();
  reserved.set_reserve_ms(absl::ToDoubleMilliseconds(now - received));
  if (request.has_local()) {
    kv->Activate();
    job.sequence.TakeKv(*std::move(kv));
  } else {
    *reserved.mutable_landing() = BeginLanding(job, *std::move(kv), actions);
  }
  actions.emplace_back(SendEvent{leg, std::move(event)});
  return actions;
}

v1::Landing DecodeScheduler::BeginLanding(DecodeJob& job, SequenceKv kv, Actions& actions) {
  job.state = State::kLanding;
  LandingSpec spec;
  spec.transfer_id = job.transfer_id;
  spec.ticket = MintTicket(*random_);
  spec.prefill_instance_id = job.prefill_instance_id;
  spec.prefill_identity = job.prefill_identity;
  for (uint32_t group = 0; group < pools_->groups(); ++group) {
    spec.wanted.push_back(pools_->geometry().NeededAfter(group, job.sequence.prompt_tokens()));
  }
  spec.expires = job.deadline;
  v1::Landing landing = MakeLanding(spec.ticket, options_.instance_id, options_.advertise,
                                    options_.transports, pools_->geometry(), spec.wanted);
  kv.BeginLanding();
  spec.kv = std::move(kv);
  actions.emplace_back(StartLanding{std::move(spec)});
  return landing;
}

DecodeScheduler::Actions DecodeScheduler::OnLegClosed(LegId leg) {
  Actions actions;
  if (DecodeJob* job = jobs_.Find(leg)) End(*job, actions);
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnAbort(const std::string& request_id) {
  Actions actions;
  for (DecodeJob* job : jobs_.OfRequest(request_id)) {
    Close(*job, absl::AbortedError("aborted by an operator"), actions);
  }
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnHandBack(absl::Time) {
  Actions actions;
  for (DecodeJob* job : jobs_.All()) {
    Close(*job, WithErrorInfo(absl::UnavailableError("this worker drains"), kReasonDraining), actions);
  }
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnLanded(landing::Landed landed, absl::Time now) {
  Actions actions;
  DecodeJob* job = jobs_.Find(landed.transfer_id);
  if (job == nullptr || job->state != State::kLanding) return actions;
  job->state = State::kRunning;
  landed.kv.Activate();
  job->sequence.TakeKv(std::move(landed.kv));
  job->sequence.OnPromptLanded();
  job->ready_at = now;
  v1::DecodeEvent event;
  event.mutable_landed()->set_kv_bytes(static_cast<double>(landed.bytes));
  event.mutable_landed()->set_transport(landed.transport);
  event.mutable_landed()->set_prefill_queue_ms(landed.commit.prefill_queue_ms());
  event.mutable_landed()->set_prefill_compute_ms(landed.commit.prefill_compute_ms());
  actions.emplace_back(SendEvent{job->leg, std::move(event)});
  const bool wants_token = job->sequence.output_tokens() == 0;
  const v1::LegToken& first_token = landed.commit.first_token();
  if (wants_token != landed.commit.has_first_token() || first_token.id() >= info_->vocab_size) {
    Close(*job,
          absl::InternalError("the handoff's first token is missing, unasked for or outside the vocabulary"),
          actions);
    return actions;
  }
  if (wants_token) {
    job->sequence.Append(first_token.id());
    SendTokens(*job, first_token, now, actions);
    EndIfFinished(*job, actions);
  }
  return actions;
}

DecodeScheduler::Actions DecodeScheduler::OnLandingFailed(const landing::LandingFailed& failed) {
  Actions actions;
  DecodeJob* job = jobs_.Find(failed.transfer_id);
  if (job == nullptr || job->state != State::kLanding) return actions;
  job->state = State::kRunning;  // the transfer side has nothing of it any more
  Close(*job, WithErrorInfo(failed.status, kReasonHandoffFailed, {{"peer", job->prefill_instance_id}}),
        actions);
  return actions;
}

void DecodeScheduler::Resume(Actions& actions) {
  for (DecodeJob* job : Ranked(State::kPreempted)) {
    absl::StatusOr<SequenceKv> kv = Reserve(*job);
    if (!kv.ok()) return;  // the others wait behind it
    kv->Activate();
    job->sequence.TakeKv(*std::move(kv));
    job->state = State::kRunning;
    actions.emplace_back(Resumed{job->dropped_tokens});
  }
}

void DecodeScheduler::Preempt(DecodeJob& job, Actions& actions) {
  job.state = State::kPreempted;
  ++job.preemptions;
  job.dropped_tokens = job.sequence.computed();
  job.room_tokens = 0;
  job.prompt_logprobs.clear();
  job.sequence.DropKv();
  actions.emplace_back(Preempted{job.request_id, job.dropped_tokens, job.preemptions});
}

std::vector<DecodeScheduler::DecodeJob*> DecodeScheduler::Grow(absl::Time now, Actions& actions) {
  std::vector<DecodeJob*> running = Ranked(State::kRunning);
  std::vector<DecodeJob*> ready;
  for (size_t i = 0; i < running.size(); ++i) {
    DecodeJob& job = *running[i];
    const uint32_t tokens = job.sequence.known_tokens();
    while (tokens > job.room_tokens) {
      if (pools_->Grow(job.sequence.mutable_kv(), tokens).ok()) {
        job.room_tokens = tokens;
      } else if (i + 1 < running.size()) {
        Preempt(*running.back(), actions);
        running.pop_back();
      } else {
        break;
      }
    }
    if (tokens <= job.room_tokens) ready.push_back(&job);
  }
  if (ready.empty() && !running.empty()) RefuseLanding(now, actions);
  std::sort(ready.begin(), ready.end(),
            [](const DecodeJob* a, const DecodeJob* b) { return a->leg < b->leg; });
  return ready;
}

// Nothing can run: what is missing lies in landings, of which the last gives way. The router queues it again.
void DecodeScheduler::RefuseLanding(absl::Time now, Actions& actions) {
  const std::vector<DecodeJob*> landing = Ranked(State::kLanding);
  if (landing.empty() || now < next_refusal_) return;
  next_refusal_ = now + options_.step_target;
  Close(*landing.back(),
        WithRetryInfo(absl::ResourceExhaustedError("KV blocks ran out while its KV was awaited"),
                      options_.step_target),
        actions);
}

std::optional<StepPlan> DecodeScheduler::StartStep(absl::Time now, Actions& actions) {
  if (jobs_.stepping()) return std::nullopt;
  Resume(actions);
  const std::vector<DecodeJob*> running = Grow(now, actions);
  // A row for each sequence, however slow steps are: those that arrived last would otherwise wait for the
  // others to end.
  std::optional<StepPlan> plan = jobs_.StartStep(running, static_cast<uint32_t>(running.size()), now);
  for (DecodeJob* job : jobs_.step()) {
    if (job->sequence.prompt_computed()) {
      if (!job->first_step_at) job->first_step_at = now;
    } else if (!job->prefill_queue) {
      job->prefill_queue = now - job->ready_at;
      job->prefill_started = now;
    }
  }
  return plan;
}

DecodeScheduler::Actions DecodeScheduler::OnStepDone(const StepResult& result, absl::Time now) {
  Actions actions;
  for (const auto& [job, own] : jobs_.FinishStep(result, now)) OnRowsDone(*job, *own, now, actions);
  return actions;
}

void DecodeScheduler::OnRowsDone(DecodeJob& job, const SequenceResult& result, absl::Time now,
                                 Actions& actions) {
  const bool prefilled = !job.first_step_at;
  if (prefilled && job.sequence.prompt_computed()) job.ready_at = now;
  for (const SampledToken& token : result.prompt_logprobs)
    job.prompt_logprobs.push_back(WriteToken(token, true));
  if (!result.sampled) return;
  SendTokens(job, WriteToken(*result.sampled, job.sequence.spec().logprobs.has_value()), now, actions);
  EndIfFinished(job, actions);
}

void DecodeScheduler::SendTokens(DecodeJob& job, v1::LegToken token, absl::Time now, Actions& actions) {
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
  actions.emplace_back(SendEvent{job.leg, std::move(event)});
}

void DecodeScheduler::EndIfFinished(DecodeJob& job, Actions& actions) {
  const Sequence::Finish finish = job.sequence.finish();
  if (finish == Sequence::Finish::kNone) return;
  v1::DecodeEvent event;
  const bool stop = finish == Sequence::Finish::kStop;
  event.mutable_done()->set_finish(stop ? v1::LEG_FINISH_STOP : v1::LEG_FINISH_LENGTH);
  actions.emplace_back(SendEvent{job.leg, std::move(event)});
  actions.emplace_back(CloseLeg{job.leg, absl::OkStatus(), stop ? "stop" : "length"});
  End(job, actions);
}

void DecodeScheduler::Close(DecodeJob& job, absl::Status status, Actions& actions) {
  actions.emplace_back(CloseLeg{job.leg, std::move(status), ""});
  End(job, actions);
}

void DecodeScheduler::End(DecodeJob& job, Actions& actions) {
  if (job.state == State::kLanding) {
    actions.emplace_back(DropLanding{job.transfer_id});
    job.state = State::kRunning;
  }
  jobs_.End(job);
}

absl::Time DecodeScheduler::next_timer() const { return jobs_.next_timer(); }

DecodeScheduler::Actions DecodeScheduler::OnTimer(absl::Time now) {
  Actions actions;
  for (DecodeJob* job : jobs_.Late(now)) {
    Close(*job, absl::DeadlineExceededError("the leg's time is up"), actions);
  }
  if (!jobs_.TakeProgressDue(now)) return actions;
  for (const DecodeJob* job : jobs_.All()) {
    v1::DecodeEvent event;
    *event.mutable_progress() = jobs_.ProgressOf(*job);
    actions.emplace_back(SendEvent{job->leg, std::move(event)});
  }
  return actions;
}

std::string_view DecodeScheduler::phase(LegId leg) const {
  const DecodeJob* job = jobs_.Find(leg);
  if (job == nullptr) return "";
  if (job->state == State::kLanding) return "landing";
  if (job->state == State::kPreempted) return "preempted";
  return job->sequence.prompt_computed() ? "decoding" : "prefilling";
}

WorkerLoad DecodeScheduler::load() const {
  WorkerLoad load = jobs_.load();
  for (const DecodeJob* job : jobs_.All()) {
    ++(job->state == State::kRunning ? load.running : load.waiting);
    if (job->state != State::kLanding) load.waiting_tokens += job->sequence.prompt_left();
  }
  return load;
}

absl::Status DecodeScheduler::CheckInvariants() const {
  if (jobs_.size() > options_.max_running)
    return absl::InternalError("more sequences than the batch may hold");
  for (const DecodeJob* job : jobs_.All()) {
    if ((job->state == State::kRunning) == job->sequence.kv().empty()) {
      return absl::InternalError(StrCat("leg ", job->leg, " runs without blocks, or has some and does not"));
    }
    if (job->state == State::kRunning && job->sequence.computed() > job->room_tokens) {
      return absl::InternalError(StrCat("leg ", job->leg, " has computed beyond its blocks"));
    }
  }
  return jobs_.CheckInvariants();
}

}  // namespace baton
