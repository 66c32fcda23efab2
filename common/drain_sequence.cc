#include "common/drain_sequence.h"

namespace baton {

ServingPhase DrainSequence::Advance(absl::Time now, const Facts& facts) {
  if (phase_ == ServingPhase::kServing && facts.requested) {
    phase_ = ServingPhase::kNotServing;
    next_advance_ = now + options_.delay;
  }
  if (phase_ == ServingPhase::kNotServing && (facts.hurried || now >= next_advance_)) {
    phase_ = ServingPhase::kRefusing;
    next_advance_ = now + options_.timeout;
  }
  if (phase_ == ServingPhase::kRefusing && (facts.running == 0 || facts.hurried || now >= next_advance_)) {
    phase_ = ServingPhase::kHandingBack;
    next_advance_ = now + options_.hand_back;
  }
  if (phase_ == ServingPhase::kHandingBack && (facts.running == 0 || now >= next_advance_)) {
    phase_ = ServingPhase::kStopping;
    next_advance_ = absl::InfiniteFuture();
  }
  return phase_;
}

}  // namespace baton
