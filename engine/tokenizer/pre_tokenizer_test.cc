#include "engine/tokenizer/pre_tokenizer.h"

#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

using testing::ElementsAre;

class PreTokenizerTest : public testing::TestWithParam<std::string_view> {};

// testdata/words.jsonl holds the cuts that two regular expression engines make with the models' own patterns.
TEST_P(PreTokenizerTest, CutsAsThePatternsDo) {
  const absl::StatusOr<PreTokenizer> rules = PreTokenizerFromName(GetParam());
  ASSERT_TRUE(rules.ok()) << rules.status();
  std::ifstream in("engine/tokenizer/testdata/words.jsonl");
  int texts = 0;
  for (std::string line; std::getline(in, line); ++texts) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(json.is_discarded()) << line;
    const std::string text = json["text"];
    std::vector<size_t> lengths;
    for (std::string_view word : SplitWords(*rules, text)) lengths.push_back(word.size());
    EXPECT_EQ(lengths, json[std::string(GetParam())].get<std::vector<size_t>>())
        << testing::PrintToString(text);
  }
  EXPECT_GT(texts, 900);
}

INSTANTIATE_TEST_SUITE_P(Rules, PreTokenizerTest,
                         testing::Values("gpt-2", "smollm", "llama-bpe", "qwen2", "default"),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::erase(name, '-');
                           return name;
                         });

TEST(SplitWordsTest, WordsAreStretchesOfTheText) {
  const std::string text = "It's 12 o'clock.\n";
  EXPECT_THAT(SplitWords(PreTokenizer::kGpt2, text),
              ElementsAre("It", "'s", " 12", " o", "'", "clock", ".", "\n"));
  EXPECT_EQ(SplitWords(PreTokenizer::kGpt2, text)[1].data(), text.data() + 2);
  EXPECT_THAT(SplitWords(PreTokenizer::kGpt2, ""), ElementsAre());
}

TEST(SplitWordsTest, ALongTextTakesLinearTime) {
  const std::clock_t start = std::clock();
  for (const std::string_view unit : {" ", "\n", "a", "'", "1", " \n", "\r", "!", "'s", "\u3000"}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    for (const auto rules : {PreTokenizer::kGpt2, PreTokenizer::kLlamaBpe, PreTokenizer::kDefault}) {
      size_t bytes = 0;
      for (std::string_view word : SplitWords(rules, text)) bytes += word.size();
      ASSERT_EQ(bytes, text.size());
    }
  }
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
}

TEST(PreTokenizerFromNameTest, RefusesOthersByName) {
  const absl::Status status = PreTokenizerFromName("tekken").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("\"tekken\""));
}

}  // namespace
}  // namespace baton
