#include "router/call_timeline.h"

#include <algorithm>

namespace baton {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

// A whole that is divided into parts: none is more than what the ones before it have left.
class Whole {
 public:
  explicit Whole(absl::Duration whole) : left_(Milliseconds(whole)) {}
  double Take(double part) {
    const double taken = std::clamp(part, 0.0, left_);
    left_ -= taken;
    return taken;
  }
  double left() const { return left_; }

 private:
  double left_;
};

}  // namespace

void CallTimeline::OnAttempt(const Pair& pair, const std::string& prefill_instance,
                             const std::string& decode_instance, absl::Time now) {
  if (tokens_ == 0) queued_ += now - queued_since_;
  if (first_attempt_ == attempts_) of_first_ = current_;
  if (second_attempt_ == attempts_) of_second_ = current_;
  current_ = Heard();
  attempt_since_ = current_.ready = now;
  ++attempts_;
  pair_ = pair;
  prefill_instance_ = prefill_instance;
  decode_instance_ = decode_instance;
}

void CallTimeline::OnAttemptLost(absl::Time now) {
  if (tokens_ == 0) lost_ += now - attempt_since_;
}

void CallTimeline::OnReserved(const v1::Reserved& reserved, absl::Time now) {
  current_.reservation_ms = reserved.reserve_ms();
  current_.ready = now;
}

void CallTimeline::OnFirstToken(const v1::FirstToken& first, absl::Time now) {
  current_.prefill_queue_ms = first.queue_ms();
  current_.prefill_compute_ms = first.compute_ms();
  current_.cached_tokens = first.cached_tokens();
  current_.prompt_computed = now;
}

void CallTimeline::OnPrefillDone(const v1::PrefillDone& done) { current_.handoff_ms = done.handoff_ms(); }

void CallTimeline::OnLanded(const v1::Landed& landed, absl::Time now) {
  kv_bytes_ += landed.kv_bytes();
  transport_ = landed.transport();
  current_.landed = current_.ready = now;
  if (landed.has_prefill_compute_ms() && !current_.prefill_compute_ms) {
    current_.prefill_queue_ms = landed.prefill_queue_ms();
    current_.prefill_compute_ms = landed.prefill_compute_ms();
  }
}

void CallTimeline::OnTokens(const v1::Tokens& tokens) {
  if (tokens.has_prefill_compute_ms()) {
    current_.prefill_queue_ms = tokens.prefill_queue_ms();
    current_.prefill_compute_ms = tokens.prefill_compute_ms();
  }
  if (tokens.has_decode_queue_ms() && !current_.decode_queue_ms) {
    current_.decode_queue_ms = tokens.decode_queue_ms();
    current_.first_step_ms = tokens.step_ms();
  }
}

std::optional<absl::Duration> CallTimeline::OnToken(absl::Time now) {
  ++tokens_;
  const absl::Time before = last_token_;
  last_token_ = now;
  if (tokens_ == 1) {
    first_token_ = now;
    first_attempt_ = attempts_;
    return std::nullopt;
  }
  if (tokens_ == 2) {
    second_token_ = now;
    second_attempt_ = attempts_;
  }
  return now - before;
}

void CallTimeline::ReportFirstToken(v1::Timings& timings) const {
  const Heard& heard = OfFirst();
  timings.set_ttft_ms(Milliseconds(first_token_ - arrival_));
  Whole ttft(first_token_ - arrival_);
  timings.set_tokenize_ms(ttft.Take(Milliseconds(tokenize_)));
  timings.set_router_queue_ms(ttft.Take(Milliseconds(queued_)));
  timings.set_lost_attempts_ms(ttft.Take(Milliseconds(lost_)));
  timings.set_reservation_ms(ttft.Take(heard.reservation_ms.value_or(0)));
  timings.set_prefill_queue_ms(ttft.Take(heard.prefill_queue_ms.value_or(0)));
  timings.set_prefill_compute_ms(ttft.Take(heard.prefill_compute_ms.value_or(0)));
  timings.set_network_ms(ttft.left());
}

void CallTimeline::ReportFirstGap(v1::Timings& timings) const {
  const Heard& heard = OfSecond();
  Whole gap(second_token_ - first_token_);
  timings.set_decode_queue_ms(gap.Take(heard.decode_queue_ms.value_or(0)));
  timings.set_first_step_ms(gap.Take(heard.first_step_ms.value_or(0)));
  if (second_attempt_ != first_attempt_) {
    timings.set_first_gap_lost_ms(gap.Take(Milliseconds(heard.ready - first_token_)));
  } else if (heard.landed) {
    // The answer may end before prefill's word arrives. What the router heard of both ends is then the
    // measure; token 0 that came with the KV waited for nothing.
    const absl::Time computed = std::min(heard.prompt_computed.value_or(*heard.landed), *heard.landed);
    timings.set_handoff_ms(gap.Take(heard.handoff_ms.value_or(Milliseconds(*heard.landed - computed))));
  }
  timings.set_first_gap_network_ms(gap.left());
}

v1::Timings CallTimeline::Report(absl::Time now) const {
  v1::Timings timings;
  timings.set_e2e_ms(Milliseconds((tokens_ > 0 ? last_token_ : now) - arrival_));
  timings.set_tokenize_ms(Milliseconds(tokenize_));
  timings.set_router_queue_ms(Milliseconds(queued_));
  timings.set_lost_attempts_ms(Milliseconds(lost_));
  timings.set_recoveries(attempts_ > 0 ? attempts_ - 1 : 0);
  if (recipe_changes_ > 0) timings.set_recipe_changes(recipe_changes_);
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
  ReportFirstToken(timings);
  if (tokens_ < 2) return timings;
  timings.set_tpot_ms(Milliseconds(last_token_ - first_token_) / (tokens_ - 1));
  ReportFirstGap(timings);
  return timings;
}

}  // namespace baton
