#ifndef BATON_ROUTER_CALL_TIMELINE_H_
#define BATON_ROUTER_CALL_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "baton/v1/decode.pb.h"
#include "baton/v1/prefill.pb.h"
#include "router/pair_picker.h"

namespace baton {

// When things happened to one call, on the router's clock, and what the workers reported of their own parts;
// from these come the timings of the reply. Parts add up to the whole by construction, since network is what
// is left and no part is more than that. Owned by one call.
class CallTimeline {
 public:
  CallTimeline(absl::Time arrival, absl::Duration tokenize) : arrival_(arrival), tokenize_(tokenize) {}

  void OnQueued(absl::Time now) { queued_since_ = now; }
  void OnAttempt(const Pair& pair, const std::string& prefill_instance, const std::string& decode_instance,
                 absl::Time now);
  // The answer goes on at a worker of another numeric recipe.
  void OnRecipeChange() { ++recipe_changes_; }
  // The attempt ended without finishing the call.
  void OnAttemptLost(absl::Time now);
  void OnReserved(const v1::Reserved& reserved, absl::Time now);
  void OnFirstToken(const v1::FirstToken& first, absl::Time now);
  void OnPrefillDone(const v1::PrefillDone& done);
  void OnLanded(const v1::Landed& landed, absl::Time now);
  void OnTokens(const v1::Tokens& tokens);
  // A token was accepted and released; returns the gap since the one before.
  std::optional<absl::Duration> OnToken(absl::Time now);

  v1::Timings Report(absl::Time now) const;
  absl::Time queued_since() const { return queued_since_; }
  // Of the attempt that brought token 0, or of the latest while there is none.
  uint32_t cached_tokens() const { return tokens_ == 0 ? current_.cached_tokens : OfFirst().cached_tokens; }

 private:
  // What was heard of one attempt. Durations are as its workers reported them.
  struct Heard {
    std::optional<double> reservation_ms;
    std::optional<double> prefill_queue_ms;
    std::optional<double> prefill_compute_ms;
    std::optional<double> handoff_ms;
    std::optional<double> decode_queue_ms;
    std::optional<double> first_step_ms;
    uint32_t cached_tokens = 0;
    std::optional<absl::Time> prompt_computed;  // heard from prefill
    std::optional<absl::Time> landed;
    absl::Time ready;  // its KV was at decode, or decode could begin to compute it
  };
  const Heard& OfFirst() const { return first_attempt_ == attempts_ ? current_ : of_first_; }
  const Heard& OfSecond() const { return second_attempt_ == attempts_ ? current_ : of_second_; }
  void ReportFirstToken(v1::Timings& timings) const;
  void ReportFirstGap(v1::Timings& timings) const;

  const absl::Time arrival_;
  const absl::Duration tokenize_;
  absl::Time queued_since_;
  absl::Duration queued_;  // before the first token
  absl::Duration lost_;    // likewise
  absl::Time attempt_since_;
  uint32_t attempts_ = 0;
  uint32_t recipe_changes_ = 0;
  Pair pair_;
  std::string prefill_instance_;
  std::string decode_instance_;

  uint32_t tokens_ = 0;
  absl::Time first_token_;
  absl::Time second_token_;
  absl::Time last_token_;
  // The attempts that brought the first and the second token, counted from 1, and what was heard of each.
  uint32_t first_attempt_ = 0;
  uint32_t second_attempt_ = 0;
  Heard current_;
  Heard of_first_;
  Heard of_second_;
  double kv_bytes_ = 0;  // of all attempts that landed
  std::string transport_;
};

}  // namespace baton

#endif  // BATON_ROUTER_CALL_TIMELINE_H_
