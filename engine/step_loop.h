#ifndef BATON_ENGINE_STEP_LOOP_H_
#define BATON_ENGINE_STEP_LOOP_H_

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/executor.h"

namespace baton {

// What a worker's loop does when it turns. Every method is called on the loop's executor.
class StepLoopBody {
 public:
  virtual ~StepLoopBody() = default;
  // Takes one step of the engine if there is one to take. False when there is nothing to compute.
  virtual bool Step() = 0;
  // OnTimer is called at this time or later; asked for after every event and every step.
  virtual absl::Time NextTimer() = 0;
  virtual void OnTimer() = 0;
  // Last, after each event, step or timer.
  virtual void OnTurned() = 0;
};

// Turns a worker: events in the order of their posting, between any two steps all that have come by then;
// steps for as long as there are any; timers when they are due, also between steps; else it sleeps. The
// executor's thread is the one compute thread of the worker, so whatever else is posted there waits for the
// step that runs.
//
// Post may be called from any thread, everything else runs on the executor, which is stopped before loop and
// body go.
class StepLoop {
 public:
  using Event = absl::AnyInvocable<void() &&>;

  // Both outlive the loop.
  StepLoop(Executor* executor, StepLoopBody* body) : executor_(executor), body_(body) {}

  // Runs `event` and turns. False, with `event` destroyed unrun, once the executor is stopping.
  bool Post(Event event);

 private:
  void Turn();
  void Step();

  Executor* const executor_;
  StepLoopBody* const body_;
  // Of the executor.
  bool step_posted_ = false;
  absl::Time timer_at_ = absl::InfiniteFuture();
  Executor::TimerId timer_ = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_STEP_LOOP_H_
