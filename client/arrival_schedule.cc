#include "client/arrival_schedule.h"

#include <cmath>

#include "client/split_mix.h"
#include "common/check.h"

namespace baton {

ArrivalSchedule::ArrivalSchedule(double requests_per_second, uint64_t seed)
    : requests_per_second_(requests_per_second), state_(seed) {
  BATON_CHECK(std::isfinite(requests_per_second) && requests_per_second > 0);
}

double ArrivalSchedule::Uniform() {
  // 53 random bits, moved by half a step so that the logarithm is always finite.
  return (static_cast<double>(SplitMix(state_) >> 11) + 0.5) * 0x1p-53;
}

absl::Duration ArrivalSchedule::Next() {
  elapsed_seconds_ += -std::log(Uniform()) / requests_per_second_;
  return absl::Seconds(elapsed_seconds_);
}

}  // namespace baton
