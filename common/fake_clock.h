#ifndef BATON_COMMON_FAKE_CLOCK_H_
#define BATON_COMMON_FAKE_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "common/check.h"
#include "common/clock.h"

namespace baton {

// Time that stands still until it is moved. Resolution: nanoseconds. Safe to move and read from any threads.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::FromUnixSeconds(1'000'000'000))
      : unix_nanos_(absl::ToUnixNanos(start)) {}

  absl::Time Now() const override { return absl::FromUnixNanos(unix_nanos_.load()); }

  void Advance(absl::Duration step) {
    BATON_CHECK(step >= absl::ZeroDuration());
    unix_nanos_.fetch_add(absl::ToInt64Nanoseconds(step));
  }

  // `now` may not lie before the present.
  void Set(absl::Time now) {
    const int64_t unix_nanos = absl::ToUnixNanos(now);
    BATON_CHECK(unix_nanos >= unix_nanos_.exchange(unix_nanos));
  }

 private:
  std::atomic<int64_t> unix_nanos_;
};

}  // namespace baton

#endif  // BATON_COMMON_FAKE_CLOCK_H_
