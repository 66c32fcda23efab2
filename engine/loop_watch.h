#ifndef BATON_ENGINE_LOOP_WATCH_H_
#define BATON_ENGINE_LOOP_WATCH_H_

#include <functional>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/serial_executor.h"
#include "engine/load_board.h"

namespace baton {

// Whether a loop stands still: it does not turn, or has something to compute and finishes no step, for longer
// than a bound. A pure state machine.
class StallDetector {
 public:
  // Fresh until `bound` after `now`.
  StallDetector(absl::Duration bound, absl::Time now) : bound_(bound), turned_at_(now), stepped_at_(now) {}

  // Told a few times per bound. Returns whether the loop stands still.
  bool Observe(const LoopPulse& pulse, absl::Time now);
  // Since when it has done nothing.
  absl::Time idle_since() const { return turned_at_ < stepped_at_ ? turned_at_ : stepped_at_; }

 private:
  const absl::Duration bound_;
  LoopPulse last_;
  absl::Time turned_at_;
  absl::Time stepped_at_;
};

// Watches the loop of a worker from a thread of its own, so that a step that never ends is noticed: health,
// a metric and the log then say so, and say when the loop goes on.
class LoopWatch {
 public:
  // `take_pulse` and `on_change` are called on the watch's thread until its end; `on_change` with whether the
  // loop moves (again). `clock` and `metrics` outlive the watch.
  LoopWatch(absl::Duration bound, const Clock* clock, Metrics* metrics, std::function<LoopPulse()> take_pulse,
            std::function<void(bool moves)> on_change);
  ~LoopWatch();

 private:
  void Look();

  const absl::Duration interval_;
  const Clock* const clock_;
  Metrics* const metrics_;
  const std::function<LoopPulse()> take_pulse_;
  const std::function<void(bool)> on_change_;
  // Of the executor.
  StallDetector detector_;
  bool stalled_ = false;
  SerialExecutor executor_;
};

}  // namespace baton

#endif  // BATON_ENGINE_LOOP_WATCH_H_
