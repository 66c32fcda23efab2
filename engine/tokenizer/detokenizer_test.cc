#include "engine/tokenizer/detokenizer.h"

#include <random>
#include <string>

#include "common/utf8.h"
#include "engine/tokenizer/tiny_tokenizer.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

class DetokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = TinyByteLevel().Create();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }

  // What each byte completes, with "|" after each, then what Finish gives.
  std::string Pushed(std::string_view bytes) const {
    Detokenizer detokenizer(tokenizer_.get(), /*skip_special_tokens=*/true);
    std::string out;
    for (char c : bytes) out += detokenizer.Push(static_cast<uint8_t>(c)) + "|";
    return out + detokenizer.Finish();
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(DetokenizerTest, HoldsBackTheBytesOfAnUnfinishedCharacter) {
  EXPECT_EQ(Pushed("a\xc3\xa9z"), "a||\u00e9|z|");
  EXPECT_EQ(Pushed("\xe2\x82\xac"), "||\u20ac|");
  EXPECT_EQ(Pushed("\xf0\x9f\x98\x80"), "|||\U0001f600|");
}

TEST_F(DetokenizerTest, ReplacesWhatCanNoLongerBecomeACharacterAtOnce) {
  EXPECT_EQ(Pushed("\xff"), "\ufffd|");
  EXPECT_EQ(Pushed("\xe2\x82z"), "||\ufffdz|");
  EXPECT_EQ(Pushed("\xc3\xc3\xa9"), "|\ufffd|\u00e9|");
  EXPECT_EQ(Pushed("\xe0\x80"), "|\ufffd\ufffd|");
  EXPECT_EQ(Pushed("\xed\xa0"), "|\ufffd\ufffd|");
  EXPECT_EQ(Pushed("\xf4\x90"), "|\ufffd\ufffd|");
}

TEST_F(DetokenizerTest, FinishReplacesWhatWasHeldBackOnce) {
  EXPECT_EQ(Pushed("a\xf0\x9f\x98"), "a||||\ufffd");
  EXPECT_EQ(Pushed("a"), "a|");
}

TEST_F(DetokenizerTest, AgreesWithReplacingTheWholeTextOnRandomBytes) {
  std::mt19937 random(11);
  constexpr std::string_view kBytes =
      "a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5\xff";
  for (int round = 0; round < 5000; ++round) {
    std::string bytes;
    for (uint32_t length = random() % 12; length > 0; --length) bytes += kBytes[random() % kBytes.size()];
    std::string pushed = Pushed(bytes);
    std::erase(pushed, '|');
    ASSERT_EQ(pushed, ReplaceInvalidUtf8(bytes)) << testing::PrintToString(bytes);
  }
}

TEST_F(DetokenizerTest, SkipsControlTokensWhereAskedTo) {
  Detokenizer skipping(tokenizer_.get(), /*skip_special_tokens=*/true);
  EXPECT_EQ(skipping.Push(256), "");
  EXPECT_EQ(skipping.Push(258), "[user]");
  Detokenizer showing(tokenizer_.get(), /*skip_special_tokens=*/false);
  EXPECT_EQ(showing.Push(256), "<|im_start|>");
}

TEST(DetokenizerSpacePrefixTest, TakesOffTheSpaceOfTheFirstWordOnly) {
  TinyTokenizer tiny = TinySentencePiece();
  const TokenId word = tiny.Add("\u2581a");
  const auto tokenizer = tiny.Create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  Detokenizer detokenizer(tokenizer->get(), /*skip_special_tokens=*/true);
  EXPECT_EQ(detokenizer.Push(1), "");
  EXPECT_EQ(detokenizer.Push(word), "a");
  EXPECT_EQ(detokenizer.Push(word), " a");
}

}  // namespace
}  // namespace baton
