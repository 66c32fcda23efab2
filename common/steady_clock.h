#ifndef BATON_COMMON_STEADY_CLOCK_H_
#define BATON_COMMON_STEADY_CLOCK_H_

#include "common/clock.h"

namespace baton {

// Production time: the wall clock as read once per process, carried on by the machine's steady clock. A step
// of the wall clock therefore moves no deadline. All instances of a process agree.
class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override;
};

}  // namespace baton

#endif  // BATON_COMMON_STEADY_CLOCK_H_
