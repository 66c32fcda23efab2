#include "absl/time/clock.h"

#include <chrono>

#include "common/fake_clock.h"
#include "common/steady_clock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(SteadyClock, NeverGoesBackAndInstancesAgree) {
  const SteadyClock a;
  const SteadyClock b;
  absl::Time last = a.Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = (i % 2 == 0 ? b : a).Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SteadyClock, FollowsTheSteadyClock) {
  const SteadyClock clock;
  const auto steady_before = std::chrono::steady_clock::now();
  const absl::Time before = clock.Now();
  while (clock.Now() - before < absl::Milliseconds(2)) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - steady_before, std::chrono::milliseconds(2));
}

TEST(SteadyClock, StartsAtTheWallClock) {
  EXPECT_LT(absl::AbsDuration(SteadyClock().Now() - absl::Now()), absl::Minutes(1));
}

TEST(FakeClock, MovesOnlyWhenMoved) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(clock.Now() - start, absl::Nanoseconds(1));
  clock.Set(start + absl::Hours(1));
  EXPECT_EQ(clock.Now() - start, absl::Hours(1));
}

TEST(FakeClockDeathTest, RefusesToGoBack) {
  FakeClock clock;
  EXPECT_DEATH(clock.Advance(absl::Nanoseconds(-1)), "broken invariant");
  EXPECT_DEATH(clock.Set(clock.Now() - absl::Nanoseconds(1)), "broken invariant");
}

}  // namespace
}  // namespace baton
