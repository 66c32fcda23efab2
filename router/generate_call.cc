#include "router/generate_call.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/error_details.h"
#include "common/str_cat.h"
#include "router/retry_table.h"

namespace baton {
namespace {

const google::protobuf::RepeatedPtrField<v1::LegToken> kNoPromptLogprobs;

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
      text_(tokenizer, spec_.skip_special_tokens, spec_.stop_strings, spec_.include_stop),
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

PairRequest GenerateCall::pair_request() const {
  const uint32_t prompt = static_cast<uint32_t>(spec_.prompt.size());
  PairRequest request{prompt, prompt + spec_.max_tokens, suspects_, suspect_pairs_};
  if (!refused_by_.empty()) request.suspects.push_back(refused_by_);
  return request;
}

void GenerateCall::OnPair(const Pair& pair, absl::Time now, RouterActions& actions) {
  BATON_CHECK(state_ == State::kQueued && !attempt_.prefill.open && !attempt_.decode.open);
  const uint32_t number = attempt_.transfer_id == TransferId() ? 0 : attempt_.number + 1;
  attempt_ = Attempt();
  attempt_.number = number;
  attempt_.transfer_id = TransferId::Mint(*random_);
  attempt_.started_with_tokens = has_tokens();
  attempt_.decode.worker = pair.decode;
  attempt_.decode.instance_id = registry_->InstanceOf(pair.decode);
  attempt_.decode.assignment = registry_->Assign(pair.decode, spec_.prompt.size() + spec_.max_tokens);
  if (!pair.prefill.empty()) {
    attempt_.prefill.worker = pair.prefill;
    attempt_.prefill.instance_id = registry_->InstanceOf(pair.prefill);
    attempt_.prefill.assignment = registry_->Assign(pair.prefill, spec_.prompt.size());
  }
  timeline_.OnAttempt(pair, attempt_.prefill.instance_id, attempt_.decode.instance_id, now);
  state_ = State::kReserving;
  OpenDecode(now, actions);
}

v1::TokenRequest GenerateCall::MakeTokenRequest() const {
  v1::TokenRequest request;
  request.mutable_prompt()->Assign(spec_.prompt.begin(), spec_.prompt.end());
  request.mutable_output()->Assign(accepted_.begin(), accepted_.end());
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
  OpenDecodeLeg open{{id_, attempt_.number, Leg::kDecode}, attempt_.decode.worker, {}, spec_.deadline};
  v1::Attempt& attempt = *open.request.mutable_attempt();
  attempt.set_request_id(spec_.request_id);
  attempt.set_transfer_id(attempt_.transfer_id.ToBytes());
  attempt.set_number(attempt_.number);
  *open.request.mutable_request() = MakeTokenRequest();
  if (attempt_.prefill.worker.empty()) {
    open.request.mutable_local();
  } else {
    open.request.mutable_handoff()->set_prefill_instance_id(attempt_.prefill.instance_id);
  }
  attempt_.decode.open = true;
  attempt_.decode.heard = now;
  actions.push_back(std::move(open));
}

void GenerateCall::OpenPrefill(const v1::Landing& landing, absl::Time now, RouterActions& actions) {
  OpenPrefillLeg open{{id_, attempt_.number, Leg::kPrefill}, attempt_.prefill.worker, {}, spec_.deadline};
  v1::Attempt& attempt = *open.request.mutable_attempt();
  attempt.set_request_id(spec_.request_id);
  attempt.set_transfer_id(attempt_.transfer_id.ToBytes());
  attempt.set_number(attempt_.number);
  *open.request.mutable_request() = MakeTokenRequest();
  *open.request.mutable_landing() = landing;
  attempt_.prefill.open = true;
  attempt_.prefill.heard = now;
  actions.push_back(std::move(open));
}

void GenerateCall::OnPrefillEvent(uint32_t attempt, const v1::PrefillEvent& event, absl::Time now,
                                  RouterActions& actions) {
  if (ended() || queued() || attempt != attempt_.number || !attempt_.prefill.open) return;
  attempt_.prefill.heard = now;
  switch (event.event_case()) {
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
  attempt_.prefill.assignment.ReleaseTokens();
  timeline_.OnFirstToken(first);
  if (attempt_.started_with_tokens) {
    state_ = State::kDecoding;
    return;
  }
  if (!first.has_token()) {
    FailAttempt(Leg::kPrefill, absl::InternalError("a first token without a token"), now, actions);
    return;
  }
  AcceptToken(0, first.token(), first.prompt_logprobs(), now, actions);
}

void GenerateCall::OnDecodeEvent(uint32_t attempt, const v1::DecodeEvent& event, absl::Time now,
                                 RouterActions& actions) {
  if (ended() || queued() || attempt != attempt_.number || !attempt_.decode.open) return;
  attempt_.decode.heard = now;
  switch (event.event_case()) {
    case v1::DecodeEvent::kReserved:
      if (state_ != State::kReserving) break;
      timeline_.OnReserved(event.reserved());
      state_ = State::kPrefilling;
      if (!attempt_.prefill.worker.empty()) OpenPrefill(event.reserved().landing(), now, actions);
      break;
    case v1::DecodeEvent::kLanded:
      attempt_.landed = true;
      timeline_.OnLanded(event.landed());
      break;
    case v1::DecodeEvent::kTokens:
      OnTokens(event.tokens(), now, actions);
      break;
    default:
      break;  // progress was noted above; the end of the answer is decided by its tokens
  }
}

void GenerateCall::OnTokens(const v1::Tokens& tokens, absl::Time now, RouterActions& actions) {
  timeline_.OnTokens(tokens);
  uint32_t index = tokens.index();
  for (const v1::LegToken& token : tokens.tokens()) {
    if (ended() || queued()) return;
    AcceptToken(index, token, index == 0 ? tokens.prompt_logprobs() : kNoPromptLogprobs, now, actions);
    ++index;
  }
}

void GenerateCall::AcceptToken(uint32_t index, const v1::LegToken& token,
                               const google::protobuf::RepeatedPtrField<v1::LegToken>& prompt_logprobs,
                               absl::Time now, RouterActions& actions) {
  if (index < accepted_.size()) return;  // the other leg was first
  if (index > accepted_.size() || token.id() >= tokenizer_->vocab_size()) {
    FailAttempt(Leg::kDecode, absl::InternalError("a worker skipped a token or left the vocabulary"), now,
                actions);
    return;
  }
  accepted_.push_back(token.id());
  state_ = State::kDecoding;
  const std::optional<absl::Duration> gap = timeline_.OnToken(now);
  v1::GenerateStreamResponse response = DescribeToken(index, token, prompt_logprobs);
  std::string text;
  const std::optional<v1::Finish> finish = FinishAfter(token.id(), text);
  response.set_text(std::move(text));
  if (finish) {
    Finish(std::move(response), *finish, gap, now, actions);
  } else {
    actions.push_back(SendToClient{id_, std::move(response), gap});
  }
}

std::optional<v1::Finish> GenerateCall::FinishAfter(TokenId token, std::string& text) {
  const uint32_t count = static_cast<uint32_t>(accepted_.size());
  const bool may_stop = count >= spec_.min_tokens;
  v1::Finish finish;
  if (may_stop && std::find(spec_.stop_ids.begin(), spec_.stop_ids.end(), token) != spec_.stop_ids.end()) {
    if (spec_.include_stop) text = text_.Push(token, /*may_stop=*/false).text;
    text += text_.Finish();
    finish.set_reason(v1::FINISH_REASON_STOP);
    finish.set_stop_token(token);
    return finish;
  }
  AnswerText::Piece piece = text_.Push(token, may_stop);
  text = std::move(piece.text);
  if (piece.stop != nullptr) {
    finish.set_reason(v1::FINISH_REASON_STOP);
    finish.set_stop_string(*piece.stop);
    return finish;
  }
  if (count < spec_.max_tokens) return std::nullopt;
  text += text_.Finish();
  finish.set_reason(v1::FINISH_REASON_LENGTH);
  return finish;
}

v1::PositionLogprobs GenerateCall::DescribeLogprobs(const v1::LegToken& token) const {
  const auto describe = [&](uint32_t id, float logprob) {
    v1::TokenLogprob entry;
    entry.set_token(id);
    entry.set_logprob(logprob);
    Detokenizer text(tokenizer_, /*skip_special_tokens=*/false);
    entry.set_text(text.Push(id) + text.Finish());
    return entry;
  };
  v1::PositionLogprobs position;
  *position.mutable_token() = describe(token.id(), token.logprob());
  for (const v1::LegLogprob& top : token.top()) {
    if (top.token() < tokenizer_->vocab_size()) *position.add_top() = describe(top.token(), top.logprob());
  }
  return position;
}

v1::GenerateStreamResponse GenerateCall::DescribeToken(
    uint32_t index, const v1::LegToken& token,
    const google::protobuf::RepeatedPtrField<v1::LegToken>& prompt_logprobs) const {
  v1::GenerateStreamResponse response;
  response.set_index(index);
  response.set_count(1);
  if (spec_.return_tokens) response.add_tokens(token.id());
  if (spec_.logprobs) *response.add_logprobs() = DescribeLogprobs(token);
  if (index > 0) return response;
  response.set_seed(spec_.sampling.seed());
  v1::PromptInfo& prompt = *response.mutable_prompt();
  prompt.set_prompt_tokens(static_cast<uint32_t>(spec_.prompt.size()));
  prompt.set_cached_tokens(timeline_.cached_tokens());
  for (const v1::LegToken& entry : prompt_logprobs) {
    if (entry.id() < tokenizer_->vocab_size()) *prompt.add_logprobs() = DescribeLogprobs(entry);
  }
  return response;
}

v1::Usage GenerateCall::usage() const {
  v1::Usage usage;
  usage.set_prompt_tokens(static_cast<uint32_t>(spec_.prompt.size()));
  usage.set_cached_tokens(timeline_.cached_tokens());
  usage.set_completion_tokens(static_cast<uint32_t>(accepted_.size()));
  return usage;
}

void GenerateCall::Finish(v1::GenerateStreamResponse response, v1::Finish finish,
                          std::optional<absl::Duration> gap, absl::Time now, RouterActions& actions) {
  finish_reason_ = finish.reason();
  *response.mutable_finish() = std::move(finish);
  *response.mutable_usage() = usage();
  *response.mutable_timings() = timeline_.Report(now);
  actions.push_back(SendToClient{id_, std::move(response), gap});
  End(absl::OkStatus(), now, actions);
}

void GenerateCall::End(const absl::Status& status, absl::Time now, RouterActions& actions) {
  if (ended()) return;
  const char* const phase = PhaseName(state_);
  state_ = State::kEnded;
  CloseLegs(actions);
  actions.push_back(
      EndCall{id_, status, phase, spec_.request_id, finish_reason_, timeline_.Report(now), usage()});
}

void GenerateCall::CloseLegs(RouterActions& actions) {
  for (const Leg leg : {Leg::kPrefill, Leg::kDecode}) {
    OpenLeg& open = leg == Leg::kPrefill ? attempt_.prefill : attempt_.decode;
    if (std::exchange(open.open, false)) actions.push_back(CancelLeg{{id_, attempt_.number, leg}});
    open.assignment.Reset();
  }
}

void GenerateCall::OnLegClosed(uint32_t attempt, Leg leg, const absl::Status& status, absl::Time now,
                               RouterActions& actions) {
  if (ended() || queued() || attempt != attempt_.number) return;
  OpenLeg& open = leg == Leg::kPrefill ? attempt_.prefill : attempt_.decode;
  if (!std::exchange(open.open, false)) return;
  open.assignment.Reset();
  if (leg == Leg::kPrefill && (status.ok() || attempt_.landed)) {
    // With the prompt's last word said, decode alone carries on. One that ends without it has lost the
    // request.
    if (status.ok() && state_ == State::kPrefilling && !attempt_.landed) {
      FailAttempt(leg, absl::UnavailableError("the prefill leg ended without a first token"), now, actions);
    }
    return;
  }
  FailAttempt(leg, status.ok() ? absl::UnavailableError("the decode leg ended before the answer") : status,
              now, actions);
}

void GenerateCall::FailAttempt(Leg leg, const absl::Status& status, absl::Time now, RouterActions& actions) {
  const AfterLeg after = Classify(status);
  if (after == AfterLeg::kEnd) {
    End(ForClient(status), now, actions);
    return;
  }
  timeline_.OnAttemptLost(now);
  const OpenLeg& blamed = leg == Leg::kPrefill ? attempt_.prefill : attempt_.decode;
  if (BlamesPair(status)) {
    suspect_pairs_.emplace_back(attempt_.prefill.worker, attempt_.decode.worker);
  } else if (after == AfterLeg::kRetry) {
    lost_instances_.insert(blamed.instance_id);
    registry_->OnLost(blamed.worker, blamed.instance_id,
                      StrCat("a leg to it ended: ", absl::StatusCodeToString(status.code())));
    suspects_.push_back(blamed.worker);
  }
  if (after == AfterLeg::kRetry) ++lost_attempts_;
  if (lost_instances_.size() >= options_->max_lost_workers || lost_attempts_ >= options_->max_lost_attempts) {
    End(ForClient(status), now, actions);
    return;
  }
  actions.push_back(AttemptLost{id_, spec_.request_id, {id_, attempt_.number, leg}, blamed.worker, status});
  // A decode worker without room is passed over once; prefill workers are waited for.
  refused_by_ = after == AfterLeg::kRequeue && leg == Leg::kDecode ? blamed.worker : "";
  CloseLegs(actions);
  Enqueue(now, after == AfterLeg::kRequeue ? now + options_->requeue_delay : now);
}

void GenerateCall::OnNoWorker(absl::Time now, RouterActions& actions) {
  if (now - queued_since() < options_->worker_wait) return;
  End(WithErrorInfo(absl::UnavailableError("no decode worker serves"), "NO_WORKER"), now, actions);
}

void GenerateCall::OnTooLarge(uint64_t largest_tokens, absl::Time now, RouterActions& actions) {
  End(InvalidField("stopping.max_tokens",
                   StrCat("prompt of ", spec_.prompt.size(), " tokens + max_tokens ", spec_.max_tokens,
                          " is over the ", largest_tokens, " tokens that the largest KV pool holds")),
      now, actions);
}

absl::Time GenerateCall::SilentAt(Leg leg) const {
  const OpenLeg& open = leg == Leg::kPrefill ? attempt_.prefill : attempt_.decode;
  const bool matters = open.open && !(leg == Leg::kPrefill && attempt_.landed);
  return matters ? open.heard + options_->leg_silence : absl::InfiniteFuture();
}

absl::Time GenerateCall::next_timer() const {
  if (ended()) return absl::InfiniteFuture();
  absl::Time next = spec_.deadline;
  if (spec_.time_limit) next = std::min(next, spec_.arrival + *spec_.time_limit);
  if (queued() && !has_tokens()) next = std::min(next, queued_since() + options_->queue_limit);
  for (const Leg leg : {Leg::kPrefill, Leg::kDecode}) next = std::min(next, SilentAt(leg));
  return next;
}

void GenerateCall::OnTimer(absl::Time now, RouterActions& actions) {
  if (ended()) return;
  if (spec_.time_limit && now >= spec_.arrival + *spec_.time_limit) {
    v1::GenerateStreamResponse response;
    response.set_text(text_.Finish());
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
    if (now < SilentAt(leg)) continue;
    FailAttempt(leg, absl::UnavailableError("the leg is silent"), now, actions);
    return;
  }
}

absl::Status GenerateCall::CheckInvariants() const {
  const bool legs = attempt_.prefill.open || attempt_.decode.open;
  if ((queued() || ended()) && legs)
    return absl::InternalError(StrCat("call ", id_, " has legs it should not have"));
  if (!queued() && !ended() && !attempt_.decode.open) {
    return absl::InternalError(StrCat("call ", id_, " runs without a decode leg"));
  }
  if (accepted_.size() > spec_.max_tokens)
    return absl::InternalError(StrCat("call ", id_, " has too many tokens"));
  return absl::OkStatus();
}

}  // namespace baton
