#include "engine/planner.h"

#include <numeric>

#include "gtest/gtest.h"

namespace baton {
namespace {

PlannedSequence Decoding(uint32_t rows = 1) { return {.prompt_left = 0, .decode_rows = rows}; }
PlannedSequence Prompt(uint32_t left) { return {.prompt_left = left}; }
constexpr PlannerLimits kLimits = {.token_budget = 100, .chunk_tokens = 80};

TEST(PlanRows, DecodingComesBeforePrompts) {
  EXPECT_EQ(PlanRows({Prompt(500), Decoding(), Decoding()}, {.token_budget = 3, .chunk_tokens = 80}),
            (std::vector<uint32_t>{1, 1, 1}));
}

TEST(PlanRows, OnePromptGetsWhatAChunkHolds) {
  EXPECT_EQ(PlanRows({Prompt(500)}, kLimits), (std::vector<uint32_t>{80}));
  EXPECT_EQ(PlanRows({Prompt(30)}, kLimits), (std::vector<uint32_t>{30}));
}

TEST(PlanRows, AShortPromptOvertakesALongOneWhichStillAdvances) {
  EXPECT_EQ(PlanRows({Prompt(5000), Prompt(400), Prompt(20)}, kLimits), (std::vector<uint32_t>{50, 30, 20}));
}

TEST(PlanRows, TheOldestAdvancesHoweverManyShortOnesArrive) {
  std::vector<PlannedSequence> sequences(50, Prompt(10));
  sequences.insert(sequences.begin(), Prompt(5000));
  EXPECT_EQ(PlanRows(sequences, kLimits)[0], 50);
}

TEST(PlanRows, WhatOneHalfLeavesGoesToTheOther) {
  EXPECT_EQ(PlanRows({Prompt(10), Prompt(500)}, kLimits), (std::vector<uint32_t>{10, 80}));
  EXPECT_EQ(PlanRows({Prompt(500), Prompt(10)}, kLimits), (std::vector<uint32_t>{80, 10}));
}

TEST(PlanRows, AReplayUsesManyRowsAfterEveryDecodeHasOne) {
  EXPECT_EQ(PlanRows({Decoding(200), Decoding(), Prompt(500)}, kLimits), (std::vector<uint32_t>{80, 1, 19}));
}

TEST(PlanRows, NeverPassesTheBudgetTheChunkOrWhatIsLeft) {
  for (uint32_t budget = 1; budget < 40; ++budget) {
    const std::vector<PlannedSequence> sequences = {Prompt(7), Decoding(5), Prompt(33), Decoding(),
                                                    Prompt(1)};
    const std::vector<uint32_t> rows = PlanRows(sequences, {.token_budget = budget, .chunk_tokens = 16});
    EXPECT_LE(std::accumulate(rows.begin(), rows.end(), 0u), budget);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_LE(rows[i], 16);
      EXPECT_LE(rows[i], std::max(sequences[i].prompt_left, sequences[i].decode_rows));
    }
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0u), std::min<uint32_t>(budget, 7 + 5 + 16 + 1 + 1));
  }
}

TEST(ChunkBudget, ShrinksAtOnceAndGrowsSlowly) {
  ChunkBudget budget(absl::Milliseconds(100), 16, 512);
  EXPECT_EQ(budget.budget(), 512);
  budget.OnStep(512, absl::Milliseconds(400));
  EXPECT_EQ(budget.budget(), 128);
  budget.OnStep(128, absl::Milliseconds(50));
  EXPECT_EQ(budget.budget(), 144);
  budget.OnStep(128, absl::Seconds(10));
  EXPECT_EQ(budget.budget(), 16);
  for (int i = 0; i < 100; ++i) budget.OnStep(budget.budget(), absl::Milliseconds(1));
  EXPECT_EQ(budget.budget(), 512);
}

TEST(ChunkBudget, IgnoresStepsThatSayNothing) {
  ChunkBudget budget(absl::Milliseconds(100), 16, 512);
  budget.OnStep(1, absl::Milliseconds(50));
  EXPECT_EQ(budget.budget(), 512);
}

}  // namespace
}  // namespace baton
