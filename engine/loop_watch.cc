#include "engine/loop_watch.h"

#include <utility>

#include "common/log.h"

namespace baton {

bool StallDetector::Observe(const LoopPulse& pulse, absl::Time now) {
  if (pulse.turns != last_.turns) turned_at_ = now;
  // A loop without work owes no step; from the moment it has some, it has the whole bound.
  if (pulse.steps != last_.steps || !pulse.has_work || !last_.has_work) stepped_at_ = now;
  last_ = pulse;
  return now - idle_since() > bound_;
}

LoopWatch::LoopWatch(absl::Duration bound, const Clock* clock, Metrics* metrics,
                     std::function<LoopPulse()> take_pulse, std::function<void(bool)> on_change)
    : interval_(bound / 4),
      clock_(clock),
      metrics_(metrics),
      take_pulse_(std::move(take_pulse)),
      on_change_(std::move(on_change)),
      detector_(bound, clock->Now()),
      executor_("loop-watch", clock) {
  executor_.Post([this] { Look(); });
}

LoopWatch::~LoopWatch() { executor_.Stop(); }

void LoopWatch::Look() {
  const absl::Time now = clock_->Now();
  const absl::Time idle_since = detector_.idle_since();
  const bool stalled = detector_.Observe(take_pulse_(), now);
  if (stalled != stalled_) {
    stalled_ = stalled;
    if (stalled) metrics_->Get<Metric::kLoopStalls>().Increment();
    Log(stalled ? LogLevel::kError : LogLevel::kInfo, stalled ? "loop_stalled" : "loop_moves_again",
        {{"seconds", absl::ToDoubleSeconds(now - idle_since)}});
    on_change_(!stalled);
  }
  executor_.PostAt(now + interval_, [this] { Look(); });
}

}  // namespace baton
