#include "engine/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(TokenLogprobs, EqualLogSoftmaxInDoubles) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(5, 6);
  std::vector<float> row(49157);
  for (float& x : row) x = normal(random);
  double sum = 0;
  for (float x : row) sum += std::exp(double{x});
  std::vector<TokenId> order(row.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return row[a] > row[b]; });
  const SampledToken result = TokenLogprobs(row, 777, 20);
  EXPECT_EQ(result.id, 777);
  EXPECT_NEAR(result.logprob, row[777] - std::log(sum), 1e-5);
  ASSERT_THAT(result.top, SizeIs(20));
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(result.top[i].id, order[i]);
    EXPECT_NEAR(result.top[i].logprob, row[order[i]] - std::log(sum), 1e-5);
  }
}

TEST(TokenLogprobs, TiesGoToLowerIdsAndNoMoreThanAskedForReturn) {
  const std::vector<float> row = {1, 2, 2, 0, 2};
  const SampledToken result = TokenLogprobs(row, 3, 2);
  ASSERT_THAT(result.top, SizeIs(2));
  EXPECT_EQ(result.top[0].id, 1);
  EXPECT_EQ(result.top[1].id, 2);
  EXPECT_THAT(TokenLogprobs(row, 3, 0).top, IsEmpty());
  EXPECT_THAT(TokenLogprobs(row, 3, 4'000'000'000).top, SizeIs(5));
}

TEST(TokenLogprobs, NanAndInfinity) {
  const std::vector<float> row = {kNan, -kInfinity, 1, 1};
  EXPECT_EQ(TokenLogprobs(row, 0, 0).logprob, -kInfinity);
  EXPECT_EQ(TokenLogprobs(row, 1, 0).logprob, -kInfinity);
  const SampledToken result = TokenLogprobs(row, 2, 4);
  EXPECT_NEAR(result.logprob, -std::log(2.0), 1e-6);
  EXPECT_THAT(result.top, SizeIs(2));
  const std::vector<float> nothing(3, kNan);
  EXPECT_EQ(TokenLogprobs(nothing, 1, 3).logprob, -kInfinity);
  EXPECT_THAT(TokenLogprobs(nothing, 1, 3).top, IsEmpty());
  const std::vector<float> infinite = {0, kInfinity, 0};
  EXPECT_EQ(TokenLogprobs(infinite, 1, 1).logprob, 0);
  EXPECT_EQ(TokenLogprobs(infinite, 1, 1).top[0].id, 1);
}

TEST(TokenLogprobsDeathTest, TokenOutsideTheVocabulary) {
  const std::vector<float> row = {1, 2};
  EXPECT_DEATH(TokenLogprobs(row, 2, 0), "");
}

}  // namespace
}  // namespace baton
