#include "client/arrival_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "client/split_mix.h"

namespace baton {
namespace {

TEST(SplitMix, GivesThePublishedSequence) {
  // The first outputs of the reference implementation for seed 1234567.
  uint64_t state = 1234567;
  EXPECT_EQ(SplitMix(state), 6457827717110365317u);
  EXPECT_EQ(SplitMix(state), 3203168211198807973u);
  EXPECT_EQ(SplitMix(state), 9817491932198370423u);
}

TEST(ArrivalSchedule, RepeatsFromItsSeed) {
  ArrivalSchedule a(10, 5), b(10, 5), other(10, 6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const absl::Duration next = a.Next();
    EXPECT_EQ(next, b.Next());
    differs |= next != other.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(ArrivalSchedule, GapsAreExponential) {
  constexpr double kRate = 40;
  constexpr int kCount = 20000;
  ArrivalSchedule schedule(kRate, 1);
  double last = 0, sum = 0, squares = 0;
  int beyond_mean = 0;
  for (int i = 0; i < kCount; ++i) {
    const double now = absl::ToDoubleSeconds(schedule.Next());
    const double gap = now - last;
    ASSERT_GE(gap, 0);
    last = now;
    sum += gap;
    squares += gap * gap;
    beyond_mean += gap > 1 / kRate;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(squares / kCount - mean * mean);
  // Four standard errors of each estimate, for a mean and a deviation of 1 / rate and P(gap > mean) = 1 / e.
  EXPECT_NEAR(mean * kRate, 1, 4 / std::sqrt(kCount));
  EXPECT_NEAR(deviation * kRate, 1, 4 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(static_cast<double>(beyond_mean) / kCount, std::exp(-1), 4 * std::sqrt(0.2325 / kCount));
}

}  // namespace
}  // namespace baton
