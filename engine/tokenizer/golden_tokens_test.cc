// Every string of the golden files tokenizes as two independent tokenizers agree that it does.

#include <memory>
#include <string>
#include <vector>

#include "engine/model_file/model_file.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_reader.h"
#include "tests/support/model_path.h"

namespace baton {
namespace {

struct GoldenCase {
  std::string_view name;
  std::string_view model_file;
  std::string_view golden_file;
};

class GoldenTokensTest : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    auto file = ModelFile::Open(ModelPath(GetParam().model_file));
    ASSERT_TRUE(file.ok()) << file.status();
    auto tokenizer = Tokenizer::Create(**file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    auto strings = golden::ReadTokens("tests/golden/" + std::string(GetParam().golden_file));
    ASSERT_TRUE(strings.ok()) << strings.status();
    ASSERT_GE(strings->size(), 5000);
    strings_ = *std::move(strings);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<golden::TokenCase> strings_;
};

TEST_P(GoldenTokensTest, EveryStringHasTheOraclesTokens) {
  int differing = 0;
  for (const golden::TokenCase& expected : strings_) {
    const auto ids = tokenizer_->Encode({{expected.text, expected.special}}, /*add_special=*/false);
    ASSERT_TRUE(ids.ok()) << ids.status();
    if (*ids == expected.ids) continue;
    ASSERT_LT(++differing, 10) << "and more strings";
    EXPECT_THAT(*ids, testing::ElementsAreArray(expected.ids)) << testing::PrintToString(expected.text);
  }
}

TEST_P(GoldenTokensTest, RunsTokenizeAsOneText) {
  for (const golden::TokenCase& expected : strings_) {
    std::vector<TextRun> runs;
    for (size_t i = 0; i < expected.text.size(); ++i) {
      const bool continues = (static_cast<uint8_t>(expected.text[i]) & 0xc0) == 0x80;
      if (!continues && i % 3 == 0) runs.push_back({"", expected.special});
      if (runs.empty()) runs.push_back({"", expected.special});
      runs.back().text += expected.text[i];
    }
    const auto ids = tokenizer_->Encode(runs, /*add_special=*/false);
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(*ids, expected.ids) << testing::PrintToString(expected.text);
  }
}

TEST_P(GoldenTokensTest, TokensTurnBackIntoTheirText) {
  for (const golden::TokenCase& expected : strings_) {
    Detokenizer detokenizer(tokenizer_.get(), /*skip_special_tokens=*/false);
    std::string text;
    size_t token_bytes = 0;
    for (TokenId id : expected.ids) {
      text += detokenizer.Push(id);
      token_bytes += tokenizer_->TokenBytes(id).size();
    }
    text += detokenizer.Finish();
    // A byte that the vocabulary has no token for is lost, and U+2581 comes back as the space that it stands
    // for.
    if (token_bytes != expected.text.size() || expected.text.find("\xe2\x96\x81") != std::string::npos)
      continue;
    ASSERT_EQ(text, expected.text);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTokensTest,
                         testing::Values(GoldenCase{"SmolLM2", kSmolLm2File, "tokens_smollm2.jsonl"},
                                         GoldenCase{"Gemma3", kGemma3File, "tokens_gemma3.jsonl"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace baton
