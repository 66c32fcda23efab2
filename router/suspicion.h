#ifndef BATON_ROUTER_SUSPICION_H_
#define BATON_ROUTER_SUSPICION_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace baton {

// How long something that failed is left alone: not at all after the first failure, then twice as long with
// each failure in a row, and never for ever. A value; owned by whoever it is about.
class Suspicion {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(30);

  // `first`: how long the first failure counts.
  void OnFailure(absl::Time now, absl::Duration first) {
    const absl::Duration doubled = failures_ == 0 ? first : kFirst * (1 << std::min(failures_ - 1, 10u));
    over_at_ = now + std::min(std::max(first, doubled), kLongest);
    ++failures_;
  }
  // It is tried again: nobody else does until this trial's outcome can be known.
  void OnTrial(absl::Time now) { over_at_ = std::max(over_at_, now + kTrial); }
  void Clear() { *this = Suspicion(); }

  absl::Time over_at() const { return over_at_; }

 private:
  static constexpr absl::Duration kTrial = absl::Seconds(3);

  uint32_t failures_ = 0;
  absl::Time over_at_ = absl::InfinitePast();
};

}  // namespace baton

#endif  // BATON_ROUTER_SUSPICION_H_
