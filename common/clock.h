#ifndef BATON_COMMON_CLOCK_H_
#define BATON_COMMON_CLOCK_H_

#include "absl/time/time.h"

namespace baton {

// The only source of time. Never goes back, so that differences are durations. Safe to call from any thread.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() const = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_CLOCK_H_
