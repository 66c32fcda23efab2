#include "router/call_timeline.h"

#include <algorithm>

namespace baton {

void CallTimeline::OnAttempt(const Pair& pair, const std::string& prefill_instance,
                             const std::string& decode_instance, absl::Time now) {
  if (tokens_ == 0) queued_ += now - queued_since_;
  attempt_since_ = now;
  ++attempts_;
  pair_ = pair;
  prefill_instance_ = prefill_instance;
  decode_instance_ = decode_instance;
}

void CallTimeline::OnAttemptLost(absl::Time now) {
  if (tokens_ > 0) return;
  lost_ += now - attempt_since_;
  reservation_ms_.reset();
}

void CallTimeline::OnReserved(const v1::Reserved& reserved) {
  if (tokens_ == 0) reservation_ms_ = reserved.reserve_ms();
}

void CallTimeline::OnFirstToken(const v1::FirstToken& first) {
  if (tokens_ > 0) return;
  prefill_queue_ms_ = first.queue_ms();
  prefill_compute_ms_ = first.compute_ms();
  cached_tokens_ = first.cached_tokens();
}

void CallTimeline::OnPrefillDone(const v1::PrefillDone& done) {
  if (tokens_ == 0 || attempts_ == first_token_attempt_) handoff_ms_ = done.handoff_ms();
}

void CallTimeline::OnLanded(const v1::Landed& landed) {
  kv_bytes_ += landed.kv_bytes();
  transport_ = landed.transport();
}

void CallTimeline::OnTokens(const v1::Tokens& tokens) {
  if (tokens_ == 0 && tokens.has_prefill_compute_ms()) {
    prefill_queue_ms_ = tokens.prefill_queue_ms();
    prefill_compute_ms_ = tokens.prefill_compute_ms();
  }
  if (tokens_ <= 1 && tokens.has_decode_queue_ms()) {
    decode_queue_ms_ = tokens.decode_queue_ms();
    first_step_ms_ = tokens.step_ms();
  }
}

std::optional<absl::Duration> CallTimeline::OnToken(absl::Time now) {
  ++tokens_;
  const absl::Time before = last_token_;
  last_token_ = now;
  if (tokens_ == 1) {
    first_token_ = now;
    first_token_attempt_ = attempts_;
    return std::nullopt;
  }
  if (tokens_ == 2) second_token_ = now;
  return now - before;
}

v1::Timings CallTimeline::Report(absl::Time now) const {
  v1::Timings timings;
  const auto ms = [](absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); };
  timings.set_e2e_ms(ms((tokens_ > 0 ? last_token_ : now) - arrival_));
  timings.set_tokenize_ms(ms(tokenize_));
  timings.set_router_queue_ms(ms(queued_));
  timings.set_lost_attempts_ms(ms(lost_));
  timings.set_recoveries(attempts_ > 0 ? attempts_ - 1 : 0);
  if (attempts_ > 0) {
    timings.set_path(pair_.path);
    timings.set_path_reason(pair_.path_reason);
    timings.set_decode_worker(decode_instance_);
    if (!prefill_instance_.empty()) timings.set_prefill_worker(prefill_instance_);
  }
  if (!transport_.empty()) {
    timings.set_kv_bytes(kv_bytes_);
    timings.set_transport(transport_);
  }
  if (tokens_ == 0) return timings;

  timings.set_reservation_ms(reservation_ms_.value_or(0));
  timings.set_prefill_queue_ms(prefill_queue_ms_.value_or(0));
  timings.set_prefill_compute_ms(prefill_compute_ms_.value_or(0));
  timings.set_ttft_ms(ms(first_token_ - arrival_));
  timings.set_network_ms(std::max(0.0, timings.ttft_ms() - timings.tokenize_ms() - timings.router_queue_ms() -
                                           timings.reservation_ms() - timings.prefill_queue_ms() -
                                           timings.prefill_compute_ms() - timings.lost_attempts_ms()));
  if (tokens_ < 2) return timings;

  timings.set_tpot_ms(ms(last_token_ - first_token_) / (tokens_ - 1));
  if (handoff_ms_) timings.set_handoff_ms(*handoff_ms_);
  if (decode_queue_ms_) {
    timings.set_decode_queue_ms(*decode_queue_ms_);
    timings.set_first_step_ms(*first_step_ms_);
    timings.set_first_gap_network_ms(std::max(0.0, ms(second_token_ - first_token_) - timings.handoff_ms() -
                                                       timings.decode_queue_ms() - timings.first_step_ms()));
  }
  return timings;
}

}  // namespace baton
