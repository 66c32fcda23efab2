#include "tests/golden/golden_reader.h"

#include <cmath>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton::golden {
namespace {

using ::testing::Each;
using ::testing::Lt;
using ::testing::SizeIs;

struct Model {
  std::string name;
  TokenId vocab_size;
  size_t token_cases, forced_tokens, longest_prompt, greedy_cases;
};
const Model kModels[] = {{"smollm2", 49152, 5183, 1500, 200, 28}, {"gemma3", 262144, 5176, 400, 650, 24}};

std::string Path(const std::string& file) { return "tests/golden/" + file; }

void CheckTop(const TopLogits& top, TokenId vocab_size) {
  ASSERT_THAT(top.ids, SizeIs(64));
  ASSERT_THAT(top.logits, SizeIs(64));
  EXPECT_THAT(top.ids, Each(Lt(vocab_size)));
  double mass = 0;
  for (size_t i = 0; i < 64; ++i) {
    if (i > 0) {
      EXPECT_LE(top.logits[i], top.logits[i - 1]);
    }
    mass += std::exp(double{top.logits[i]} - top.logsumexp);
  }
  EXPECT_GT(mass, 0.1);
  EXPECT_LT(mass, 1 + 1e-5);
}

TEST(GoldenReader, Tokens) {
  for (const Model& model : kModels) {
    const auto cases = ReadTokens(Path("tokens_" + model.name + ".jsonl"));
    ASSERT_TRUE(cases.ok()) << cases.status();
    ASSERT_THAT(*cases, SizeIs(model.token_cases));
    size_t special = 0;
    for (const TokenCase& c : *cases) {
      special += c.special;
      EXPECT_THAT(c.ids, Each(Lt(model.vocab_size)));
      EXPECT_LE(c.ids.size(), c.text.size());  // a byte is one token at most
    }
    EXPECT_GT(special, 300);
  }
}

TEST(GoldenReader, Dequantize) {
  const auto cases = ReadDequantize(Path("dequantize.bin"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_THAT(*cases, SizeIs(10));
  EXPECT_EQ(cases->front().type, 1);  // F16
  EXPECT_EQ(cases->front().bytes.size(), 2 * cases->front().values.size());
  EXPECT_EQ(cases->back().type, 14);  // Q6_K
  EXPECT_EQ(cases->back().bytes.size() / 210, cases->back().values.size() / 256);
}

TEST(GoldenReader, Logits) {
  for (const Model& model : kModels) {
    const auto prompts = ReadLogits(Path("logits_" + model.name + ".bin"));
    ASSERT_TRUE(prompts.ok()) << prompts.status();
    ASSERT_THAT(*prompts, SizeIs(5));
    EXPECT_THAT(prompts->back().tokens, SizeIs(model.longest_prompt));
    for (const LogitsPrompt& prompt : *prompts) {
      EXPECT_EQ(prompt.rows.back().row, prompt.tokens.size() - 1);
      for (const LogitsRow& row : prompt.rows) {
        EXPECT_LT(row.row, prompt.tokens.size());
        EXPECT_EQ(row.values.size(), (model.vocab_size + row.stride - 1) / row.stride);
        CheckTop(row.top, model.vocab_size);
      }
    }
  }
}

TEST(GoldenReader, Forced) {
  for (const Model& model : kModels) {
    const auto forced = ReadForced(Path("forced_" + model.name + ".bin"));
    ASSERT_TRUE(forced.ok()) << forced.status();
    EXPECT_THAT(forced->tokens, SizeIs(model.forced_tokens));
    ASSERT_THAT(forced->rows, SizeIs(model.forced_tokens));
    for (const TopLogits& top : forced->rows) CheckTop(top, model.vocab_size);
  }
}

TEST(GoldenReader, Greedy) {
  for (const Model& model : kModels) {
    const auto cases = ReadGreedy(Path("greedy_" + model.name + ".jsonl"));
    ASSERT_TRUE(cases.ok()) << cases.status();
    ASSERT_THAT(*cases, SizeIs(model.greedy_cases));
    for (const GreedyCase& c : *cases) {
      EXPECT_THAT(c.tokens, SizeIs(64));
      EXPECT_THAT(c.f32_first, SizeIs(64));
      EXPECT_THAT(c.f32_second, SizeIs(64));
      EXPECT_THAT(c.f32_gap, SizeIs(64));
    }
  }
}

TEST(GoldenReader, Sampling) {
  const auto cases = ReadSampling(Path("sampling.jsonl"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_THAT(*cases, SizeIs(300));
  for (const SamplingCase& c : *cases) EXPECT_EQ(c.logits.size(), c.probs.size());
}

TEST(GoldenReader, KlOfADistributionToItselfIsZeroAndToAnotherIsNot) {
  const TopLogits reference{std::log(10.0f), {2, 1}, {std::log(5.0f), std::log(3.0f)}};
  const float same[] = {std::log(1.0f), std::log(3.0f), std::log(5.0f), std::log(1.0f)};
  EXPECT_NEAR(BucketedKl(reference, same), 0, 1e-6);
  const float uniform[] = {0, 0, 0, 0};
  EXPECT_NEAR(BucketedKl(reference, uniform), 0.5 * std::log(2) + 0.3 * std::log(1.2) + 0.2 * std::log(0.4),
              1e-6);
}

TEST(GoldenReader, BrokenFilesAreErrors) {
  EXPECT_EQ(ReadForced(Path("absent.bin")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadForced(Path("dequantize.bin")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTokens(Path("dequantize.bin")).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string cut = testing::TempDir() + "/cut.bin";
  std::ofstream(cut, std::ios::binary) << std::string("BGTF\100\0\0\0\002\0\0\0\001\0\0\0", 16);
  EXPECT_EQ(ReadForced(cut).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton::golden
