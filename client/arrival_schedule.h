#ifndef BATON_CLIENT_ARRIVAL_SCHEDULE_H_
#define BATON_CLIENT_ARRIVAL_SCHEDULE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace baton {

// The arrival times of an open load: a Poisson process, whose gaps are independent and exponentially
// distributed. The same seed and rate give the same times on every machine. For one thread.
class ArrivalSchedule {
 public:
  // `requests_per_second` > 0, finite.
  ArrivalSchedule(double requests_per_second, uint64_t seed);

  // The next arrival, as the time since the start of the load. Never goes back.
  absl::Duration Next();

 private:
  double Uniform();  // In (0, 1).

  const double requests_per_second_;
  uint64_t state_;
  double elapsed_seconds_ = 0;
};

}  // namespace baton

#endif  // BATON_CLIENT_ARRIVAL_SCHEDULE_H_
