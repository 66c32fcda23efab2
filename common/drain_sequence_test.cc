#include "common/drain_sequence.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

constexpr DrainOptions kOptions = {.delay = absl::Seconds(5), .timeout = absl::Seconds(60)};
const absl::Time kStart = absl::FromUnixSeconds(1000);

DrainSequence::Facts Running(size_t running) { return {.requested = true, .running = running}; }

TEST(DrainSequence, ServesUntilAsked) {
  DrainSequence sequence(kOptions);
  EXPECT_EQ(sequence.Advance(kStart, {.running = 3}), ServingPhase::kServing);
  EXPECT_EQ(sequence.Advance(kStart + absl::Hours(100), {}), ServingPhase::kServing);
  EXPECT_EQ(sequence.next_advance(), absl::InfiniteFuture());
}

TEST(DrainSequence, TakesEachStepAtItsTime) {
  DrainSequence sequence(kOptions);
  EXPECT_EQ(sequence.Advance(kStart, Running(2)), ServingPhase::kNotServing);
  EXPECT_EQ(sequence.next_advance(), kStart + absl::Seconds(5));
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(4.9), Running(0)), ServingPhase::kNotServing);
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(5), Running(2)), ServingPhase::kRefusing);
  EXPECT_EQ(sequence.next_advance(), kStart + absl::Seconds(65));
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(6), Running(1)), ServingPhase::kRefusing);
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(7), Running(0)), ServingPhase::kStopping);
}

TEST(DrainSequence, StopsAtTheTimeoutWhateverRuns) {
  DrainSequence sequence(kOptions);
  sequence.Advance(kStart, Running(1));
  sequence.Advance(kStart + absl::Seconds(5), Running(1));
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(64.9), Running(1)), ServingPhase::kRefusing);
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(65), Running(1)), ServingPhase::kStopping);
}

TEST(DrainSequence, WithoutDelayAndWorkStopsAtOnce) {
  DrainSequence sequence({.delay = absl::ZeroDuration(), .timeout = absl::Seconds(60)});
  EXPECT_EQ(sequence.Advance(kStart, Running(0)), ServingPhase::kStopping);
}

TEST(DrainSequence, AHurryEndsEveryWait) {
  const DrainSequence::Facts hurried = {.requested = true, .hurried = true, .running = 9};
  DrainSequence waiting(kOptions);
  waiting.Advance(kStart, Running(9));
  EXPECT_EQ(waiting.Advance(kStart, hurried), ServingPhase::kStopping);
  DrainSequence refusing(kOptions);
  refusing.Advance(kStart, Running(9));
  refusing.Advance(kStart + absl::Seconds(5), Running(9));
  EXPECT_EQ(refusing.Advance(kStart + absl::Seconds(5), hurried), ServingPhase::kStopping);
}

TEST(DrainSequence, WhatRunsAtTheTimeoutIsHandedBack) {
  DrainSequence sequence({.timeout = absl::Seconds(60), .hand_back = absl::Seconds(1)});
  EXPECT_EQ(sequence.Advance(kStart, Running(2)), ServingPhase::kRefusing);
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(60), Running(2)), ServingPhase::kHandingBack);
  EXPECT_EQ(sequence.next_advance(), kStart + absl::Seconds(61));
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(60.5), Running(1)), ServingPhase::kHandingBack);
  DrainSequence slow = sequence;
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(60.6), Running(0)), ServingPhase::kStopping);
  EXPECT_EQ(slow.Advance(kStart + absl::Seconds(61), Running(1)), ServingPhase::kStopping);
}

TEST(DrainSequence, AHurryHandsBackToo) {
  DrainSequence sequence({.timeout = absl::Seconds(60), .hand_back = absl::Seconds(1)});
  sequence.Advance(kStart, Running(9));
  const DrainSequence::Facts hurried = {.requested = true, .hurried = true, .running = 9};
  EXPECT_EQ(sequence.Advance(kStart, hurried), ServingPhase::kHandingBack);
  EXPECT_EQ(sequence.Advance(kStart + absl::Seconds(1), hurried), ServingPhase::kStopping);
}

TEST(DrainSequence, NothingLeadsBack) {
  DrainSequence sequence(kOptions);
  sequence.Advance(kStart, Running(1));
  EXPECT_EQ(sequence.Advance(kStart, {.requested = false}), ServingPhase::kNotServing);
}

}  // namespace
}  // namespace baton
