#include "engine/loop_watch.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

constexpr absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(StallDetector, ALoopThatTurnsAndStepsMoves) {
  StallDetector detector(absl::Seconds(2), kStart);
  for (uint64_t i = 1; i < 20; ++i) {
    EXPECT_FALSE(detector.Observe({.turns = i, .steps = i, .has_work = true}, At(static_cast<double>(i))));
  }
}

TEST(StallDetector, AStepThatDoesNotEndIsAStallUntilItDoes) {
  StallDetector detector(absl::Seconds(2), kStart);
  EXPECT_FALSE(detector.Observe({.turns = 5, .steps = 3, .has_work = true}, At(1)));
  EXPECT_FALSE(detector.Observe({.turns = 5, .steps = 3, .has_work = true}, At(3)));
  EXPECT_TRUE(detector.Observe({.turns = 5, .steps = 3, .has_work = true}, At(3.1)));
  EXPECT_EQ(detector.idle_since(), At(1));
  EXPECT_FALSE(detector.Observe({.turns = 6, .steps = 4, .has_work = true}, At(4)));
}

TEST(StallDetector, ALoopThatTurnsButTakesNoStepOfItsWorkStalls) {
  StallDetector detector(absl::Seconds(2), kStart);
  bool stalled = false;
  for (uint64_t i = 0; i < 5; ++i) {
    stalled = detector.Observe({.turns = i, .steps = 7, .has_work = true}, At(static_cast<double>(i)));
    EXPECT_EQ(stalled, i > 2) << i;
  }
}

TEST(StallDetector, AnIdleLoopOwesTurnsButNoSteps) {
  StallDetector detector(absl::Seconds(2), kStart);
  for (uint64_t i = 1; i < 9; ++i) {
    EXPECT_FALSE(detector.Observe({.turns = i}, At(static_cast<double>(i))));
  }
  // Work that comes after a long pause has the whole bound.
  EXPECT_FALSE(detector.Observe({.turns = 9, .has_work = true}, At(9)));
  EXPECT_FALSE(detector.Observe({.turns = 10, .has_work = true}, At(11)));
  EXPECT_TRUE(detector.Observe({.turns = 11, .has_work = true}, At(12)));
  EXPECT_FALSE(detector.Observe({.turns = 12}, At(13)));
  EXPECT_TRUE(detector.Observe({.turns = 12}, At(16)));
}

}  // namespace
}  // namespace baton
