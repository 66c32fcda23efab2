#include "client/percentiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace baton {
namespace {

TEST(Percentiles, NearestRankOfATextbookExample) {
  // The example by which the nearest-rank method is usually explained.
  const Percentiles p({50, 15, 40, 20, 35});
  EXPECT_EQ(p.At(5), 15);
  EXPECT_EQ(p.At(30), 20);
  EXPECT_EQ(p.At(40), 20);
  EXPECT_EQ(p.At(50), 35);
  EXPECT_EQ(p.At(100), 50);
  EXPECT_EQ(p.At(0), 15);
  EXPECT_EQ(p.mean(), 32);
  EXPECT_EQ(p.min(), 15);
  EXPECT_EQ(p.max(), 50);
}

TEST(Percentiles, OneValueIsEveryPercentile) {
  const Percentiles p({7});
  for (double percent : {0.0, 0.1, 50.0, 99.9, 100.0}) EXPECT_EQ(p.At(percent), 7);
}

TEST(Percentiles, TheDefinitionHoldsOnRandomSets) {
  std::mt19937 random(1);
  for (size_t n = 1; n < 60; ++n) {
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) values.push_back(static_cast<double>(random() % 20));
    const Percentiles p(values);
    for (int percent = 1; percent <= 100; ++percent) {
      const double value = p.At(percent);
      // In whole numbers: 100 * (values <= value) >= percent * n, and not so for anything smaller.
      const auto within = std::count_if(values.begin(), values.end(), [&](double v) { return v <= value; });
      const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < value; });
      EXPECT_GE(100 * static_cast<size_t>(within), percent * n);
      EXPECT_LT(100 * static_cast<size_t>(below), percent * n);
    }
  }
}

TEST(PercentilesDeathTest, EmptyHasNone) {
  const Percentiles p({});
  EXPECT_TRUE(p.empty());
  EXPECT_DEATH(p.At(50), "");
}

}  // namespace
}  // namespace baton
