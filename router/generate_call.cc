#include "router/generate_call.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/error_details.h"
#include "common/str_cat.h"
#include "router/retry_table.h"

namespace baton {
namespace {

const CallAnswer::PromptLogprobs kNoPromptLogprobs;

// A leg that ends with DEADLINE_EXCEEDED this close to the call's deadline has met the call's own.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(50);

}  // namespace

GenerateCall::GenerateCall(CallId id, CallSpec spec, const GenerateCallOptions* options,
                           const Tokenizer* tokenizer, WorkerRegistry* registry, RandomSource* random,
                           absl::Time now)
    : id_(id),
      spec_(std::move(spec)),
      options_(options),
      tokenizer_(tokenizer),
      registry_(registry),
      random_(random),
      prefill_(&options->leg),
      decode_(&options->leg),
      losses_(&options->losses),
      answer_(&spec_, tokenizer),
      timeline_(spec_.arrival, spec_.tokenize) {
  Enqueue(now, now);
}

void GenerateCall::Enqueue(absl::Time now, absl::Time not_before) {
  state_ = State::kQueued;
  not_before_ = not_before;
  timeline_.OnQueued(now);
}

const char* GenerateCall::PhaseName(State state) {
  static constexpr const char* kNames[] = {"queued", "reserving", "prefilling", "decoding", "ended"};
  return kNames[static_cast<int>(state)];
}

PairRequest GenerateCall::pair_request(absl::Time now) const {
  PairRequest request;
  request.prompt_tokens = static_cast<uint32_t>(spec_.prompt.size());
  request.output_tokens = static_cast<uint32_t>(answer_.tokens().size());
  request.total_tokens = request.prompt_tokens + spec_.max_tokens;
  losses_.Avoid(request);
  for (auto& pair : registry_->SuspectPairs(now)) request.suspect_pairs.push_back(std::move(pair));
  request.fingerprint = fingerprint_;
  request.prefill_recipe = prefill_recipe_;
  request.decode_recipe = decode_recipe_;
  return request;
}

void GenerateCall::OnPair(const Pair& pair, absl::Time now, RouterActions& actions) {
  BATON_CHECK(queued() && !prefill_.open() && !decode_.open());
  if (std::exchange(had_pair_, true)) ++attempt_;
  transfer_id_ = TransferId::Mint(*random_);
  pair_ = pair;
  landed_ = false;
  held_.clear();
  resumes_ = has_tokens();
  losses_.OnRetryPaid();
  const uint64_t prompt = spec_.prompt.size();
  decode_.Assign(pair.decode, registry_->InstanceOf(pair.decode),
                 registry_->Assign(pair.decode, pair.reserved_tokens, 0));
  if (pair.prefill.empty()) {
    prefill_.Assign("", "", Assignment());
  } else {
    prefill_.Assign(pair.prefill, registry_->InstanceOf(pair.prefill),
                    registry_->Assign(pair.prefill, prompt, pair.depth_tokens));
    registry_->OnHandoffTried(pair.prefill, pair.decode, now);
  }
  timeline_.OnAttempt(pair, prefill_.instance_id(), decode_.instance_id(), now);
  if (resumes_ && (pair.prefill_recipe != prefill_recipe_ || pair.decode_recipe != decode_recipe_)) {
    timeline_.OnRecipeChange();
  }
  state_ = State::kReserving;
  OpenDecode(now, actions);
}

v1::Attempt GenerateCall::MakeAttempt(const CallLeg& leg) const {
  v1::Attempt attempt;
  attempt.set_request_id(spec_.request_id);
  attempt.set_transfer_id(transfer_id_.ToBytes());
  attempt.set_number(attempt_);
  attempt.set_instance_id(leg.instance_id());
  return attempt;
}

v1::TokenRequest GenerateCall::MakeTokenRequest() const {
  v1::TokenRequest request;
  request.mutable_prompt()->Assign(spec_.prompt.begin(), spec_.prompt.end());
  request.mutable_output()->Assign(answer_.tokens().begin(), answer_.tokens().end());
  *request.mutable_sampling() = spec_.sampling;
  request.set_max_tokens(spec_.max_tokens);
  request.set_min_tokens(spec_.min_tokens);
  request.mutable_stop_token_ids()->Assign(spec_.stop_ids.begin(), spec_.stop_ids.end());
  if (spec_.logprobs) request.set_logprobs(*spec_.logprobs);
  // Prompt logprobs ride with token 0: asked for once.
  if (spec_.prompt_logprobs && !has_tokens()) request.set_prompt_logprobs(*spec_.prompt_logprobs);
  return request;
}

void GenerateCall::OpenDecode(absl::Time now, RouterActions& actions) {
  OpenDecodeLeg open{{id_, attempt_, Leg::kDecode}, decode_.worker(), {}, spec_.deadline};
  *open.request.mutable_attempt() = MakeAttempt(decode_);
  *open.request.mutable_request() = MakeTokenRequest();
  open.request.set_priority(spec_.priority);
  if (prefill_.assigned()) {
    v1::Handoff& handoff = *open.request.mutable_handoff();
    handoff.set_prefill_instance_id(prefill_.instance_id());
    const std::string identity = registry_->IdentityOf(prefill_.worker());
    if (!identity.empty()) handoff.set_prefill_identity(identity);
  } else {
    open.request.mutable_local();
  }
  decode_.Open(CallLeg::Phase::kReserving, now);
  actions.push_back(std::move(open));
}

void GenerateCall::OpenPrefill(const v1::Landing& landing, absl::Time now, RouterActions& actions) {
  OpenPrefillLeg open{{id_, attempt_, Leg::kPrefill}, prefill_.worker(), {}, spec_.deadline};
  *open.request.mutable_attempt() = MakeAttempt(prefill_);
  *open.request.mutable_request() = MakeTokenRequest();
  *open.request.mutable_landing() = landing;
  const std::string identity = registry_->IdentityOf(decode_.worker());
  if (!identity.empty()) open.request.mutable_landing()->set_identity(identity);
  prefill_.Open(CallLeg::Phase::kComputing, now);
  actions.push_back(std::move(open));
}

void GenerateCall::OnPrefillEvent(uint32_t attempt, const v1::PrefillEvent& event, absl::Time now,
                                  RouterActions& actions) {
  if (!OfThisAttempt(attempt) || !prefill_.open()) return;
  prefill_.OnMessage(now);
  switch (event.event_case()) {
    case v1::PrefillEvent::kProgress:
      prefill_.OnSteps(event.progress().steps(), now);
      break;
    case v1::PrefillEvent::kFirstToken:
      OnFirstToken(event.first_token(), now, actions);
      break;
    case v1::PrefillEvent::kDone:
      timeline_.OnPrefillDone(event.done());
      break;
    default:
      break;
  }
}

void GenerateCall::OnFirstToken(const v1::FirstToken& first, absl::Time now, RouterActions& actions) {
  prefill_.ReleaseTokens();
  prefill_.Enter(landed_ ? CallLeg::Phase::kIdle : CallLeg::Phase::kPushing, now);
  timeline_.OnFirstToken(first, now);
  if (resumes_) {
    state_ = State::kDecoding;
    return;
  }
  if (!first.has_token()) {
    FailAttempt(Leg::kPrefill, absl::InternalError("a first token without a token"), now, actions);
    return;
  }
  AcceptToken(0, first.token(), first.prompt_logprobs(), now, actions);
  for (const v1::Tokens& tokens : std::exchange(held_, {})) AcceptTokens(tokens, now, actions);
}

void GenerateCall::OnDecodeEvent(uint32_t attempt, const v1::DecodeEvent& event, absl::Time now,
                                 RouterActions& actions) {
  if (!OfThisAttempt(attempt) || !decode_.open()) return;
  decode_.OnMessage(now);
  switch (event.event_case()) {
    case v1::DecodeEvent::kProgress:
      decode_.OnSteps(event.progress().steps(), now);
      break;
    case v1::DecodeEvent::kReserved:
      if (state_ == State::kReserving) OnReserved(event.reserved(), now, actions);
      break;
    case v1::DecodeEvent::kLanded:
      if (!landed_) OnLanded(event.landed(), now);
      break;
    case v1::DecodeEvent::kTokens:
      OnTokens(event.tokens(), now, actions);
      break;
    default:
      break;  // the end of the answer is decided by its tokens
  }
}

void GenerateCall::OnReserved(const v1::Reserved& reserved, absl::Time now, RouterActions& actions) {
  timeline_.OnReserved(reserved, now);
  state_ = State::kPrefilling;
  if (prefill_.assigned()) {
    decode_.Enter(CallLeg::Phase::kAwaiting, now);
    OpenPrefill(reserved.landing(), now, actions);
  } else {
    decode_.Enter(CallLeg::Phase::kStepping, now);
  }
}

void GenerateCall::OnLanded(const v1::Landed& landed, absl::Time now) {
  landed_ = true;
  timeline_.OnLanded(landed, now);
  decode_.Enter(CallLeg::Phase::kStepping, now);
  if (prefill_.open() && !AwaitsPromptLogprobs()) prefill_.Enter(CallLeg::Phase::kIdle, now);
  registry_->OnHandoffLanded(prefill_.worker(), decode_.worker());
  registry_->OnProven(prefill_.worker(), prefill_.instance_id());
}

void GenerateCall::OnTokens(const v1::Tokens& tokens, absl::Time now, RouterActions& actions) {
  timeline_.OnTokens(tokens);
  decode_.OnToken(now);
  if (AwaitsPromptLogprobs()) {
    held_.push_back(tokens);
  } else {
    AcceptTokens(tokens, now, actions);
  }
}

void GenerateCall::AcceptTokens(const v1::Tokens& tokens, absl::Time now, RouterActions& actions) {
  uint32_t index = tokens.index();
  for (const v1::LegToken& token : tokens.tokens()) {
    if (ended() || queued()) return;
    AcceptToken(index, token, index == 0 ? tokens.prompt_logprobs() : kNoPromptLogprobs, now, actions);
    ++index;
  }
}

void GenerateCall::AcceptToken(uint32_t index, const v1::LegToken& token,
                               const CallAnswer::PromptLogprobs& prompt_logprobs, absl::Time now,
                               RouterActions& actions) {
  const size_t accepted = answer_.tokens().size();
  if (index < accepted) return;  // the other leg was first
  if (index > accepted || token.id() >= tokenizer_->vocab_size()) {
    FailAttempt(Leg::kDecode, absl::InternalError("a worker skipped a token or left the vocabulary"), now,
                actions);
    return;
  }
  state_ = State::kDecoding;
  fingerprint_ = pair_.fingerprint;
  prefill_recipe_ = pair_.prefill_recipe;
  decode_recipe_ = pair_.decode_recipe;
  const std::optional<absl::Duration> gap = timeline_.OnToken(now);
  CallAnswer::Step step = answer_.Take(token, prompt_logprobs, timeline_.cached_tokens());
  if (step.finish) {
    Finish(std::move(step.response), *std::move(step.finish), gap, now, actions);
  } else {
    actions.push_back(SendToClient{id_, std::move(step.response), gap});
  }
}

void GenerateCall::Finish(v1::GenerateStreamResponse response, v1::Finish finish,
                          std::optional<absl::Duration> gap, absl::Time now, RouterActions& actions) {
  finish_reason_ = finish.reason();
  *response.mutable_finish() = std::move(finish);
  *response.mutable_usage() = answer_.usage(timeline_.cached_tokens());
  *response.mutable_timings() = timeline_.Report(now);
  actions.push_back(SendToClient{id_, std::move(response), gap});
  if (decode_.open()) registry_->OnProven(decode_.worker(), decode_.instance_id());
  End(absl::OkStatus(), now, actions);
}

void GenerateCall::End(const absl::Status& status, absl::Time now, RouterActions& actions) {
  if (ended()) return;
  const char* const phase = PhaseName(state_);
  state_ = State::kEnded;
  CloseLegs(actions);
  actions.push_back(EndCall{id_, status, phase, spec_.request_id, finish_reason_, timeline_.Report(now),
                            answer_.usage(timeline_.cached_tokens())});
}

void GenerateCall::CloseLegs(RouterActions& actions) {
  for (const Leg leg : {Leg::kPrefill, Leg::kDecode}) {
    if (LegOf(leg).Close()) actions.push_back(CancelLeg{{id_, attempt_, leg}});
  }
}

void GenerateCall::OnLegClosed(uint32_t attempt, Leg leg, const absl::Status& status, absl::Time now,
                               RouterActions& actions) {
  if (!OfThisAttempt(attempt) || !LegOf(leg).Close()) return;
  if (absl::IsDeadlineExceeded(status) && now + kDeadlineSlack >= spec_.deadline) {
    End(ForClient(status), now, actions);
    return;
  }
  if (leg == Leg::kDecode) {
    FailAttempt(leg, status.ok() ? absl::UnavailableError("the decode leg ended before the answer") : status,
                now, actions);
    return;
  }
  if (landed_ && !AwaitsPromptLogprobs()) return;
  if (!status.ok()) {
    FailAttempt(leg, status, now, actions);
  } else if (state_ == State::kPrefilling) {
    FailAttempt(leg, absl::UnavailableError("the prefill leg ended without a first token"), now, actions);
  } else {
    decode_.Enter(CallLeg::Phase::kPushing,
                  now);  // decode alone carries on, once it says that the KV is there
  }
}

void GenerateCall::OnReplacement(absl::Time now, RouterActions& actions) {
  if (queued() || ended()) return;
  for (const Leg leg : {Leg::kPrefill, Leg::kDecode}) {
    const CallLeg& open = LegOf(leg);
    if (open.lost_at(spec_.deadline) == absl::InfiniteFuture()) continue;  // closed, or of no matter
    if (!registry_->Replaced(open.worker(), open.instance_id())) continue;
    FailAttempt(
        leg,
        WithErrorInfo(absl::UnavailableError("another process is at the worker's address"), kReasonRestarted),
        now, actions);
    return;
  }
}

void GenerateCall::FailAttempt(Leg leg, const absl::Status& status, absl::Time now, RouterActions& actions) {
  const RetryRow& row = AfterLegEnded(status);
  if (row.after == AfterLeg::kEnd) {
    End(ForClient(status), now, actions);
    return;
  }
  timeline_.OnAttemptLost(now);
  const CallLeg& blamed = LegOf(leg);
  TellRegistry(row.blame, blamed, status, now);
  losses_.Add(row, blamed, prefill_.worker(), decode_.worker());
  if (losses_.exhausted()) {
    End(ForClient(status), now, actions);
    return;
  }
  actions.push_back(AttemptLost{
      id_, spec_.request_id, {id_, attempt_, leg}, blamed.worker(), status, PhaseName(state_), row.word});
  CloseLegs(actions);
  Enqueue(now, now + losses_.Backoff(*random_));
}

void GenerateCall::TellRegistry(Blame blame, const CallLeg& leg, const absl::Status& status, absl::Time now) {
  switch (blame) {
    case Blame::kWorker:
      registry_->OnLost(leg.worker(), leg.instance_id(),
                        StrCat("a leg to it ended: ", absl::StatusCodeToString(status.code())), now);
      break;
    case Blame::kPair:
      registry_->OnHandoffFailed(prefill_.worker(), decode_.worker(), now);
      break;
    case Blame::kDraining:
      registry_->OnDraining(leg.worker(), leg.instance_id());
      break;
    case Blame::kRoom:
    case Blame::kNobody:
      break;
  }
}

void GenerateCall::OnNoWorker(absl::Time now, RouterActions& actions) {
  if (now - queued_since() < (has_tokens() ? options_->resume_wait : options_->worker_wait)) return;
  End(WithErrorInfo(absl::UnavailableError("no decode worker serves"), "NO_WORKER"), now, actions);
}

void GenerateCall::OnTooLarge(uint64_t largest_tokens, absl::Time now, RouterActions& actions) {
  End(InvalidField("stopping.max_tokens",
                   StrCat("prompt of ", spec_.prompt.size(), " tokens + max_tokens ", spec_.max_tokens,
                          " is over the ", largest_tokens, " tokens that the largest KV pool holds")),
      now, actions);
}

absl::Time GenerateCall::next_timer() const {
  if (ended()) return absl::InfiniteFuture();
  absl::Time next = spec_.deadline;
  if (spec_.time_limit) next = std::min(next, spec_.arrival + *spec_.time_limit);
  if (queued() && !has_tokens()) next = std::min(next, queued_since() + options_->queue_limit);
  return std::min({next, prefill_.lost_at(spec_.deadline), decode_.lost_at(spec_.deadline)});
}

void GenerateCall::OnTimer(absl::Time now, RouterActions& actions) {
  if (ended()) return;
  if (spec_.time_limit && now >= spec_.arrival + *spec_.time_limit) {
    v1::GenerateStreamResponse response;
    response.set_text(answer_.TakeRest());
    v1::Finish finish;
    finish.set_reason(v1::FINISH_REASON_TIME_LIMIT);
    Finish(std::move(response), finish, std::nullopt, now, actions);
    return;
  }
  if (now >= spec_.deadline) {
    End(absl::DeadlineExceededError("the request's time is up"), now, actions);
    return;
  }
  if (queued() && !has_tokens() && now >= queued_since() + options_->queue_limit) {
    End(WithRetryInfo(absl::ResourceExhaustedError(
                          StrCat("no worker had room within ", absl::FormatDuration(options_->queue_limit))),
                      absl::Seconds(1)),
        now, actions);
    return;
  }
  for (const Leg leg : {Leg::kPrefill, Leg::kDecode}) {
    const absl::Status loss = LegOf(leg).LossAt(now, spec_.deadline);
    if (loss.ok()) continue;
    FailAttempt(leg, loss, now, actions);
    return;
  }
}

absl::Status GenerateCall::CheckInvariants() const {
  const bool legs = prefill_.open() || decode_.open();
  if ((queued() || ended()) && legs)
    return absl::InternalError(StrCat("call ", id_, " has legs it should not have"));
  if (!queued() && !ended() && !decode_.open()) {
    return absl::InternalError(StrCat("call ", id_, " runs without a decode leg"));
  }
  if (answer_.tokens().size() > spec_.max_tokens)
    return absl::InternalError(StrCat("call ", id_, " has too many tokens"));
  return absl::OkStatus();
}

}  // namespace baton
