#include "engine/sampling/row_scan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const size_t kSizes[] = {1, 2, 3, 7, 16, 17, 255, 256, 257, 1000, 49152, 100003};

std::vector<float> RandomRow(size_t size, uint32_t seed, bool ties = false) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(-3, 4);
  std::vector<float> row(size);
  for (float& x : row) x = ties ? std::round(normal(random)) : normal(random);
  return row;
}

TEST(RowMax, OfOddSizes) {
  for (size_t size : kSizes) {
    const auto row = RandomRow(size, size);
    EXPECT_EQ(RowMax(row), *std::max_element(row.begin(), row.end()));
  }
}

TEST(RowMax, IgnoresNanAndTamesInfinity) {
  EXPECT_EQ(RowMax(std::vector<float>{kNan, -5, kNan}), -5);
  EXPECT_EQ(RowMax(std::vector<float>(40, kNan)), -kInfinity);
  std::vector<float> row(40, kNan);
  row[3] = -7;
  EXPECT_EQ(RowMax(row), -7);
  row[20] = kInfinity;
  EXPECT_EQ(RowMax(row), std::numeric_limits<float>::max());
}

TEST(FirstAtLeast, IsTheLowestId) {
  std::vector<float> row(1000, 0);
  EXPECT_EQ(FirstAtLeast(row, 1), 1000);
  row[999] = 1;
  EXPECT_EQ(FirstAtLeast(row, 1), 999);
  row[300] = 1;
  row[5] = kNan;
  EXPECT_EQ(FirstAtLeast(row, 1), 300);
}

TEST(KthGreatest, EqualsSorting) {
  for (bool ties : {false, true}) {
    for (size_t size : kSizes) {
      const auto row = RandomRow(size, 3 * size, ties);
      auto sorted = row;
      std::sort(sorted.begin(), sorted.end(), std::greater<float>());
      for (size_t k : {size_t{1}, size_t{2}, size_t{20}, size_t{5000}, size / 2, size}) {
        if (k == 0 || k > size) continue;
        EXPECT_EQ(KthGreatest(row, k), sorted[k - 1]) << size << " " << k;
      }
      EXPECT_EQ(KthGreatest(row, size + 1), -kInfinity);
    }
  }
}

TEST(KthGreatest, OfAnAscendingRow) {  // every logit is a new candidate
  std::vector<float> row(50000);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i);
  EXPECT_EQ(KthGreatest(row, 40), 49960);
  EXPECT_EQ(KthGreatest(std::vector<float>(50000, 2.5f), 40), 2.5f);
}

TEST(ForEachAtLeast, VisitsInOrderWithoutNan) {
  std::vector<float> row(600, -1);
  row[2] = row[256] = row[599] = 3;
  row[4] = kNan;
  std::vector<TokenId> ids;
  ForEachAtLeast(row, 3, [&](TokenId id, float) { ids.push_back(id); });
  EXPECT_THAT(ids, ElementsAre(2, 256, 599));
}

TEST(SoftmaxWeights, AreExpWithinTwoParts) {
  const SoftmaxWeights weights(0, 1);
  double worst = 0;
  for (int i = 0; i <= 1'000'000; ++i) {
    const float x = -86.9f * static_cast<float>(i) / 1e6f;
    const double exact = std::exp(double{x});
    worst = std::max(worst, std::abs(weights.Weight(x) - exact) / exact);
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(weights.Weight(0), 1);
  EXPECT_EQ(weights.Weight(kInfinity), 1);
  EXPECT_EQ(weights.Weight(-88), 0);
  EXPECT_EQ(weights.Weight(-kInfinity), 0);
  EXPECT_EQ(weights.Weight(kNan), 0);
}

TEST(SoftmaxWeights, SumOfOddSizes) {
  for (double temperature : {0.1, 1.0, 30.0}) {
    for (size_t size : kSizes) {
      auto row = RandomRow(size, 5 * size);
      const float max = RowMax(row);
      double exact = 0;
      for (float x : row) exact += std::exp((double{x} - max) / temperature);
      row.push_back(kNan);
      row.push_back(-kInfinity);
      EXPECT_NEAR(SoftmaxWeights(max, temperature).Sum(row) / exact, 1, 3e-6);
    }
  }
}

TEST(SoftmaxWeights, ExtremeTemperatures) {
  const SoftmaxWeights cold(3, 1e-320);
  EXPECT_EQ(cold.Weight(3), 1);
  EXPECT_EQ(cold.Weight(2.9999998f), 0);
  const SoftmaxWeights greatest(std::numeric_limits<float>::max(), 1);
  EXPECT_EQ(greatest.Weight(kInfinity), 1);
  EXPECT_EQ(greatest.Weight(std::numeric_limits<float>::lowest()), 0);
}

TEST(SoftmaxWeights, BinsHoldTheWeightsInOrder) {
  auto row = RandomRow(1003, 9);
  row[4] = kNan;
  row[5] = -kInfinity;
  row[6] = -1000;
  const SoftmaxWeights weights(RowMax(row), 0.5);
  for (float floor : {-kInfinity, -2.0f}) {
    std::vector<double> exact(SoftmaxWeights::kBins);
    for (float x : row) {
      if (x >= floor) exact[weights.Bin(x)] += weights.Weight(x);
    }
    std::vector<double> masses(SoftmaxWeights::kBins, 7);
    weights.SumBins(row, floor, absl::MakeSpan(masses));
    EXPECT_EQ(masses, exact);
  }
  EXPECT_EQ(weights.Bin(RowMax(row)), 0);
  EXPECT_EQ(weights.Bin(kInfinity), 0);
  EXPECT_EQ(weights.Bin(-1000), SoftmaxWeights::kBins - 1);
  row.erase(row.begin() + 4);
  std::sort(row.begin(), row.end(), std::greater<float>());
  for (size_t i = 1; i < row.size(); ++i) EXPECT_GE(weights.Bin(row[i]), weights.Bin(row[i - 1]));
}

TEST(SoftmaxWeights, LogitBelowIsBelow) {
  for (float max : {-1e4f, -3.0f, 0.0f, 17.0f, 3e38f}) {
    for (double temperature : {1e-320, 1e-3, 1.0, 100.0}) {
      const SoftmaxWeights weights(max, temperature);
      for (double weight : {1e-300, 1e-9, 0.3, 1.0}) {
        const float below = weights.LogitBelow(weight);
        EXPECT_LE(below, max);
        EXPECT_LE(weights.Weight(below), weight);
      }
    }
  }
}

}  // namespace
}  // namespace baton
