#ifndef BATON_TESTS_SIMULATION_SIM_WORLD_H_
#define BATON_TESTS_SIMULATION_SIM_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/seeded_random_source.h"

namespace baton {

// Simulated time and everything that will happen in it. One thread; events of the same time run in the order
// in which they were added, so a run is a function of its seed.
class SimWorld {
 public:
  // With `trace`, what happens is printed, a line each.
  explicit SimWorld(uint64_t seed, bool trace = false) : random_(seed), trace_(trace) {}

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
  // Uniform in [0, n).
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_.Next() % n); }
  bool Chance(double probability) {
    return probability > 0 && static_cast<double>(random_.Next() >> 11) * 0x1p-53 < probability;
  }

  bool tracing() const { return trace_; }
  // Call only while tracing().
  void Trace(const std::string& line) const {
    std::printf("%12.3f ms  %s\n", absl::ToDoubleMilliseconds(now_ - start_), line.c_str());
  }

 private:
  const absl::Time start_ = absl::FromUnixSeconds(1'000'000);
  absl::Time now_ = start_;
  uint64_t next_ = 0;
  uint64_t ran_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> events_;
  SeededRandomSource random_;
  const bool trace_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_WORLD_H_
