#include "kv_transfer/kv_coverage.h"

#include <random>
#include <set>
#include <tuple>

#include "gtest/gtest.h"

namespace baton {
namespace {

const KvGeometry kGeometry{KvType::kF16,
                           16,
                           {{.layers = {0, 1, 2}, .kv_heads = 1, .head_dim = 1},
                            {.layers = {3}, .kv_heads = 1, .head_dim = 1, .window_tokens = 4}}};

TEST(KvCoverage, EachCellComesOnce) {
  KvCoverage coverage(kGeometry, {{0, 10}, {7, 10}});
  EXPECT_EQ(coverage.missing(), 33);
  EXPECT_TRUE(coverage.Add(0, {0, 2}, {0, 5}).ok());
  EXPECT_FALSE(coverage.Add(0, {1, 3}, {4, 6}).ok());
  EXPECT_EQ(coverage.missing(), 23) << "a refused rectangle adds nothing";
  EXPECT_TRUE(coverage.Add(0, {0, 2}, {5, 10}).ok());
  EXPECT_TRUE(coverage.Add(0, {2, 3}, {0, 10}).ok());
  EXPECT_FALSE(coverage.complete());
  EXPECT_TRUE(coverage.Add(1, {0, 1}, {7, 10}).ok());
  EXPECT_TRUE(coverage.complete());
  EXPECT_TRUE(coverage.CheckInvariants().ok());
}

TEST(KvCoverage, WhatIsNotWantedIsRefused) {
  KvCoverage coverage(kGeometry, {{2, 10}, {}});
  EXPECT_EQ(coverage.Add(0, {0, 1}, {1, 3}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(coverage.Add(0, {0, 1}, {9, 11}).ok());
  EXPECT_FALSE(coverage.Add(0, {0, 1}, {5, 5}).ok());
  EXPECT_FALSE(coverage.Add(0, {0, 1}, {6, 5}).ok());
  EXPECT_FALSE(coverage.Add(0, {0, 4}, {2, 3}).ok());
  EXPECT_FALSE(coverage.Add(0, {2, 1}, {2, 3}).ok());
  EXPECT_FALSE(coverage.Add(1, {0, 1}, {0, 1}).ok());
  EXPECT_FALSE(coverage.Add(2, {0, 1}, {2, 3}).ok());
  EXPECT_EQ(coverage.missing(), 24);
}

TEST(KvCoverage, AgreesWithASetOfCells) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    KvCoverage coverage(kGeometry, {{3, 40}, {30, 40}});
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> present;
    for (int i = 0; i < 200; ++i) {
      const uint32_t group = random() % 2;
      const LayerRange layers{static_cast<uint32_t>(random() % 3), static_cast<uint32_t>(random() % 4)};
      const TokenRange tokens{static_cast<uint32_t>(random() % 42), static_cast<uint32_t>(random() % 42)};
      bool fits = !layers.empty() && !tokens.empty() && layers.end <= (group == 0 ? 3u : 1u) &&
                  tokens.begin >= (group == 0 ? 3u : 30u) && tokens.end <= 40;
      for (uint32_t l = layers.begin; fits && l < layers.end; ++l) {
        for (uint32_t t = tokens.begin; t < tokens.end; ++t) fits = fits && present.count({group, l, t}) == 0;
      }
      ASSERT_EQ(coverage.Add(group, layers, tokens).ok(), fits);
      for (uint32_t l = layers.begin; fits && l < layers.end; ++l) {
        for (uint32_t t = tokens.begin; t < tokens.end; ++t) present.insert({group, l, t});
      }
      ASSERT_EQ(coverage.missing(), 3 * 37 + 10 - present.size());
      ASSERT_TRUE(coverage.CheckInvariants().ok());
    }
  }
}

}  // namespace
}  // namespace baton
