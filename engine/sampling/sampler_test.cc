#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_reader.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SamplingParams ParamsOf(const golden::SamplingCase& c) {
  SamplingParams params;
  params.temperature = c.temperature;
  params.top_p = c.top_p;
  params.min_p = c.min_p;
  params.presence_penalty = c.presence_penalty;
  params.frequency_penalty = c.frequency_penalty;
  params.repetition_penalty = c.repetition_penalty;
  params.top_k = c.top_k;
  params.logit_bias = c.logit_bias;
  params.min_tokens = c.min_tokens;
  params.stop_ids = c.stop_ids;
  return params;
}

TokenId Draw(Sampler& sampler, std::vector<float> logits, uint32_t position) {
  return sampler.Sample(absl::MakeSpan(logits), position, std::nullopt).id;
}

std::vector<TokenId> Support(const SamplingParams& params, std::vector<float> logits) {
  const Sampler sampler(params, logits.size(), {}, {});
  std::vector<TokenId> ids;
  for (const auto& [id, probability] : sampler.Distribution(absl::MakeSpan(logits))) ids.push_back(id);
  return ids;
}

std::vector<float> RandomRow(size_t size, uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> row(size);
  for (float& x : row) x = normal(random);
  return row;
}

// Draws once at every position of [0, draws) and compares with the distribution. Tokens that should be drawn
// less than ten times share a bin. The statistic's mean is its degrees of freedom, its variance twice that.
void ExpectDrawsFollow(const SamplingParams& params, const std::vector<float>& logits, uint32_t draws) {
  Sampler sampler(params, logits.size(), {}, {});
  std::vector<float> scratch = logits;
  std::map<TokenId, double> expected;
  for (const auto& [id, p] : sampler.Distribution(absl::MakeSpan(scratch))) expected[id] = p * draws;
  std::map<TokenId, uint32_t> drawn;
  for (uint32_t i = 0; i < draws; ++i) ++drawn[Draw(sampler, logits, i)];
  double chi_square = 0;
  int bins = 0;
  double rare_expected = 0;
  double rare_drawn = 0;
  for (const auto& [id, count] : drawn) ASSERT_TRUE(expected.contains(id)) << id;
  for (const auto& [id, mean] : expected) {
    const double count = drawn.contains(id) ? drawn[id] : 0;
    if (mean < 10) {
      rare_expected += mean;
      rare_drawn += count;
      continue;
    }
    chi_square += (count - mean) * (count - mean) / mean;
    ++bins;
  }
  if (rare_expected >= 10) {
    chi_square += (rare_drawn - rare_expected) * (rare_drawn - rare_expected) / rare_expected;
    ++bins;
  }
  ASSERT_GT(bins, 2);
  EXPECT_LT(chi_square, bins - 1 + 4 * std::sqrt(2.0 * (bins - 1)));
}

TEST(Sampler, DistributionsOfTransformers) {
  const auto cases = golden::ReadSampling("tests/golden/sampling.jsonl");
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_THAT(*cases, SizeIs(300));
  for (size_t i = 0; i < cases->size(); ++i) {
    const golden::SamplingCase& c = (*cases)[i];
    const SamplingParams params = ParamsOf(c);
    ASSERT_TRUE(Validate(params, c.logits.size()).ok()) << i;
    const Sampler sampler(params, c.logits.size(), c.prompt, c.output);
    std::vector<float> logits = c.logits;
    std::vector<double> probabilities(logits.size());
    for (const auto& [id, p] : sampler.Distribution(absl::MakeSpan(logits))) probabilities[id] = p;
    for (size_t id = 0; id < probabilities.size(); ++id) {
      // Logits are rounded to float32 before the temperature divides them: up to 2^-24 of some hundreds.
      EXPECT_NEAR(probabilities[id], c.probs[id], 1e-4 * c.probs[id] + 1e-9)
          << "case " << i << ", token " << id;
    }
  }
}

TEST(Sampler, StateIsThatOfObservedTokens) {
  SamplingParams params;
  params.presence_penalty = 0.5;
  params.frequency_penalty = 0.7;
  params.repetition_penalty = 1.3;
  params.min_tokens = 3;
  params.stop_ids = {1};
  const std::vector<float> row = RandomRow(20, 1, 2);
  const std::vector<TokenId> prompt = {3, 4, 3};
  const std::vector<TokenId> output = {4, 5, 5};
  const Sampler moved(params, 20, prompt, output);
  Sampler stayed(params, 20, prompt, {});
  for (TokenId id : output) {
    std::vector<float> logits = row;
    EXPECT_NE(stayed.Distribution(absl::MakeSpan(logits)).at(1).first, 1);  // masked so far
    stayed.Observe(id);
  }
  std::vector<float> a = row;
  std::vector<float> b = row;
  EXPECT_EQ(moved.Distribution(absl::MakeSpan(a)), stayed.Distribution(absl::MakeSpan(b)));
}

TEST(Sampler, DrawsFollowTheDistribution) {
  ExpectDrawsFollow({.seed = 1}, RandomRow(50, 2, 1), 10000);
  ExpectDrawsFollow({.seed = 2}, RandomRow(1000, 3, 1.5), 10000);  // several blocks
  ExpectDrawsFollow({.temperature = 0.6, .top_p = 0.8, .seed = 3}, RandomRow(1000, 4, 1.5), 10000);
  ExpectDrawsFollow({.temperature = 2, .min_p = 0.1, .top_k = 30, .seed = 4}, RandomRow(1000, 5, 2), 10000);
}

TEST(Sampler, DrawsOfDifferentSeedsFollowTheDistribution) {
  const std::vector<float> row = {1, 0, 2, -1, 0.5};
  constexpr int kDraws = 10000;
  std::vector<float> scratch = row;
  std::vector<int> drawn(row.size());
  for (int seed = 0; seed < kDraws; ++seed) {
    Sampler sampler({.seed = static_cast<uint64_t>(seed)}, row.size(), {}, {});
    ++drawn[Draw(sampler, row, 99)];
  }
  double chi_square = 0;
  for (const auto& [id, p] : Sampler({}, row.size(), {}, {}).Distribution(absl::MakeSpan(scratch))) {
    chi_square += (drawn[id] - p * kDraws) * (drawn[id] - p * kDraws) / (p * kDraws);
  }
  EXPECT_LT(chi_square, 18.5);  // 99.9 % quantile, 4 degrees of freedom
}

TEST(Sampler, SamplesBySeedAndPositionOnly) {
  const std::vector<float> row = RandomRow(500, 6, 1);
  Sampler a({.seed = 42}, 500, {}, {});
  Sampler b({.seed = 42}, 500, std::vector<TokenId>{1, 2}, std::vector<TokenId>{3});
  Sampler other({.seed = 43}, 500, {}, {});
  int same_seed = 0;
  int same_position = 0;
  for (uint32_t position = 0; position < 200; ++position) {
    const TokenId id = Draw(a, row, position);
    EXPECT_EQ(id, Draw(b, row, position));
    same_seed += id == Draw(other, row, position);
    same_position += id == Draw(a, row, position + 1);
  }
  EXPECT_LT(same_seed, 20);
  EXPECT_LT(same_position, 20);
}

TEST(Sampler, WholeAndReducedDrawsAgree) {
  // A cut that cuts nothing takes another way to the same token.
  const std::vector<float> row = RandomRow(3000, 7, 2);
  Sampler whole({.seed = 5}, row.size(), {}, {});
  Sampler reduced({.min_p = 1e-30, .seed = 5}, row.size(), {}, {});
  for (uint32_t position = 0; position < 500; ++position) {
    EXPECT_EQ(Draw(whole, row, position), Draw(reduced, row, position));
  }
}

TEST(Sampler, GreedyTakesTheLowestOfEqualMaximaAfterAdjustments) {
  std::vector<float> row(1000, -1);
  row[300] = row[700] = row[701] = 4;
  row[10] = kNan;
  Sampler plain({.temperature = 0}, 1000, {}, {});
  EXPECT_EQ(Draw(plain, row, 0), 300);
  Sampler biased({.temperature = 0, .logit_bias = {{701, 0.5f}}}, 1000, {}, {});
  EXPECT_EQ(Draw(biased, row, 0), 701);
  Sampler penalized({.temperature = 0, .presence_penalty = 1}, 1000, {}, std::vector<TokenId>{300});
  EXPECT_EQ(Draw(penalized, row, 0), 700);
  Sampler masked({.temperature = 0, .min_tokens = 1, .stop_ids = {300, 700}}, 1000, {}, {});
  EXPECT_EQ(Draw(masked, row, 0), 701);
  masked.Observe(701);
  EXPECT_EQ(Draw(masked, row, 1), 300);
}

TEST(Sampler, CutsAmongEqualTokens) {
  const std::vector<float> row = {0, 3, 3, 1, 3, 2};
  EXPECT_THAT(Support({.top_k = 2}, row), ElementsAre(1, 2, 4));  // top_k keeps what equals its last
  EXPECT_THAT(Support({.top_p = 0.3}, row), ElementsAre(1, 2));   // top_p keeps lower ids first
  EXPECT_THAT(Support({.top_p = 1e-300}, row), ElementsAre(1));
  EXPECT_THAT(Support({.min_p = 1}, row), ElementsAre(1, 2, 4));
  EXPECT_THAT(Support({.top_p = 0.3, .min_p = 1, .top_k = 4}, row), ElementsAre(1, 2));
  EXPECT_THAT(Support({.top_k = 4'000'000'000}, row), SizeIs(6));
  EXPECT_THAT(Support({.temperature = 1e-320}, row), ElementsAre(1, 2, 4));
  EXPECT_THAT(Support({.temperature = 100, .top_p = 0.999999}, row), SizeIs(6));
}

TEST(Sampler, TopPOfAWideRow) {
  const std::vector<float> row = RandomRow(20000, 8, 2);
  for (double top_p : {0.001, 0.1, 0.5, 0.9, 0.999}) {
    for (uint32_t top_k : {0u, 40u, 8000u}) {
      std::vector<std::pair<float, TokenId>> order;  // most likely first
      for (TokenId id = 0; id < row.size(); ++id) order.push_back({-row[id], id});
      std::sort(order.begin(), order.end());
      if (top_k > 0) order.resize(top_k);
      double total = 0;
      for (const auto& [logit, id] : order) total += std::exp(double{-logit});
      std::vector<TokenId> expected;
      double before = 0;
      for (const auto& [logit, id] : order) {
        if (before >= top_p * total) break;
        before += std::exp(double{-logit});
        expected.push_back(id);
      }
      const std::vector<TokenId> kept = Support({.top_p = top_p, .top_k = top_k}, row);
      // One token at the edge may fall on either side in float32.
      EXPECT_NEAR(kept.size(), expected.size(), 1) << top_p << " " << top_k;
      std::sort(expected.begin(), expected.end());
      std::vector<TokenId> differing;
      std::set_symmetric_difference(kept.begin(), kept.end(), expected.begin(), expected.end(),
                                    std::back_inserter(differing));
      EXPECT_LE(differing.size(), 1);
    }
  }
}

TEST(Sampler, NanAndInfinityAreDefined) {
  Sampler sampler({.seed = 9}, 4, {}, {});
  for (uint32_t position = 0; position < 50; ++position) {
    const TokenId id = Draw(sampler, {kNan, 1, -kInfinity, 1}, position);
    EXPECT_TRUE(id == 1 || id == 3) << id;
    EXPECT_EQ(Draw(sampler, {kNan, kNan, kNan, kNan}, position), 0);
    EXPECT_EQ(Draw(sampler, {-kInfinity, kNan, -kInfinity, -kInfinity}, position), 0);
    EXPECT_EQ(Draw(sampler, {0, 5, kInfinity, 5}, position), 2);
  }
  Sampler greedy({.temperature = 0}, 4, {}, {});
  EXPECT_EQ(Draw(greedy, {kNan, 1, kInfinity, 2}, 0), 2);
  for (const SamplingParams& params :
       {SamplingParams{.top_p = 0.5}, SamplingParams{.min_p = 0.5}, SamplingParams{.top_k = 2}}) {
    EXPECT_THAT(Support(params, {kNan, kNan, kInfinity, 5}), ElementsAre(2));
    EXPECT_THAT(Support(params, {kNan, kNan, kNan, kNan}), ElementsAre(0));
  }
}

TEST(Sampler, LogprobsAreOfTheUnmodifiedLogits) {
  const std::vector<float> row = {0, std::log(2.0f), std::log(5.0f)};
  Sampler sampler({.temperature = 0, .logit_bias = {{0, 100.0f}, {2, -100.0f}}}, 3, {}, {});
  std::vector<float> logits = row;
  const SampledToken token = sampler.Sample(absl::MakeSpan(logits), 0, 2);
  EXPECT_EQ(token.id, 0);
  EXPECT_NEAR(token.logprob, std::log(1.0 / 8), 1e-6);
  ASSERT_THAT(token.top, SizeIs(2));
  EXPECT_EQ(token.top[0].id, 2);
  EXPECT_NEAR(token.top[0].logprob, std::log(5.0 / 8), 1e-6);
  EXPECT_EQ(token.top[1].id, 1);
  logits = row;
  const SampledToken plain = sampler.Sample(absl::MakeSpan(logits), 0, std::nullopt);
  EXPECT_EQ(plain.logprob, 0);
  EXPECT_THAT(plain.top, IsEmpty());
}

TEST(SamplerDeathTest, TokensOutsideTheVocabulary) {
  Sampler sampler({}, 4, {}, {});
  EXPECT_DEATH(sampler.Observe(4), "");
  std::vector<float> logits(3);
  EXPECT_DEATH(sampler.Sample(absl::MakeSpan(logits), 0, std::nullopt), "");
}

}  // namespace
}  // namespace baton
