#ifndef BATON_COMMON_EXECUTOR_H_
#define BATON_COMMON_EXECUTOR_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace baton {

// Where a state machine lives: tasks run one at a time, posted ones in the order of posting, so a machine
// that is touched only by tasks of one executor needs no lock. Production uses SerialExecutor; a simulation
// runs all of them in one thread under simulated time.
//
// Every method may be called from any thread, also from a task. Tasks must not block.
class Executor {
 public:
  using Task = absl::AnyInvocable<void() &&>;
  // Unique within an executor. 0 names no timer.
  using TimerId = uint64_t;

  virtual ~Executor() = default;

  // The time that timers go by.
  virtual absl::Time Now() const = 0;

  // Runs `task` later, never inside this call. False, with the task destroyed unrun, once the executor is
  // stopping.
  virtual bool Post(Task task) = 0;

  // Runs `task` once Now() >= `when`: timers in the order of their times, equal times in the order of
  // posting. Returns 0, with the task destroyed unrun, once the executor is stopping.
  virtual TimerId PostAt(absl::Time when, Task task) = 0;

  // True when the timer's task is destroyed and will never run. False when it has started, was cancelled or
  // is unknown; from a task of this executor, false for a live id thus means that it has run to its end or is
  // the caller.
  virtual bool CancelTimer(TimerId id) = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_EXECUTOR_H_
