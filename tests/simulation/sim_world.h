#ifndef BATON_TESTS_SIMULATION_SIM_WORLD_H_
#define BATON_TESTS_SIMULATION_SIM_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/seeded_random_source.h"

namespace baton {

// Simulated time and everything that will happen in it. One thread; events of the same time run in the order
// in which they were added, so a run is a function of its seed.
class SimWorld {
 public:
  explicit SimWorld(uint64_t seed) : random_(seed) {}

  absl::Time now() const { return now_; }
  RandomSource& random() { return random_; }

  void At(absl::Time when, std::function<void()> event) {
    events_.emplace(std::make_pair(std::max(when, now_), next_++), std::move(event));
  }
  void After(absl::Duration delay, std::function<void()> event) { At(now_ + delay, std::move(event)); }

  // Runs the next event; false when there is none.
  bool RunOne() {
    if (events_.empty()) return false;
    auto first = events_.extract(events_.begin());
    now_ = first.key().first;
    ++ran_;
    first.mapped()();
    return true;
  }
  absl::Time next_event() const {
    return events_.empty() ? absl::InfiniteFuture() : events_.begin()->first.first;
  }
  uint64_t events_run() const { return ran_; }

  // Uniform in [low, high].
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    const int64_t span = absl::ToInt64Nanoseconds(high - low);
    return span <= 0 ? low
                     : low + absl::Nanoseconds(
                                 static_cast<int64_t>(random_.Next() % static_cast<uint64_t>(span + 1)));
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  uint64_t next_ = 0;
  uint64_t ran_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> events_;
  SeededRandomSource random_;
};

// One direction of one stream: what is sent arrives later, in order.
class SimChannel {
 public:
  SimChannel(SimWorld* world, absl::Duration min_delay, absl::Duration max_delay)
      : world_(world), min_delay_(min_delay), max_delay_(max_delay) {}

  void Send(std::function<void()> deliver) {
    last_ = std::max(last_, world_->now() + world_->Between(min_delay_, max_delay_));
    world_->At(last_, std::move(deliver));
  }

 private:
  SimWorld* const world_;
  const absl::Duration min_delay_;
  const absl::Duration max_delay_;
  absl::Time last_ = absl::InfinitePast();
};

// Calls a machine's OnTimer when its time has come: Arm after every event with the machine's next_timer().
class SimTimer {
 public:
  explicit SimTimer(SimWorld* world)
      : world_(world), armed_(std::make_shared<absl::Time>(absl::InfiniteFuture())) {}
  ~SimTimer() { *armed_ = absl::InfiniteFuture(); }

  void Arm(absl::Time when, std::function<void()> fire) {
    if (*armed_ == when) return;
    *armed_ = when;
    if (when == absl::InfiniteFuture()) return;
    world_->At(when, [armed = armed_, when, fire = std::move(fire)] {
      if (*armed != when) return;
      *armed = absl::InfiniteFuture();
      fire();
    });
  }

 private:
  SimWorld* const world_;
  std::shared_ptr<absl::Time> armed_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_WORLD_H_
