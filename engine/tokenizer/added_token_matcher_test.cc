#include "engine/tokenizer/added_token_matcher.h"

#include <string>
#include <vector>

#include "engine/model_file/gguf_writer.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

class AddedTokenMatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    GgufWriter writer;
    const std::vector<std::string> tokens = {"x", "<a>", "<a><b>", "\n", "\n\n\n", "<c>", "<cd", "\xff"};
    writer.AddStrings("tokenizer.ggml.tokens", tokens);
    writer.AddInts("tokenizer.ggml.token_type", {1, 4, 3, 4, 4, 2, 5, 4});
    const std::vector<std::byte> bytes = writer.Serialize();
    vocabulary_ = *Vocabulary::Read(**ModelFile::Parse(bytes));
    matcher_ = std::make_unique<AddedTokenMatcher>(vocabulary_);
  }

  // "id:bytes" of the match, "" when there is none.
  std::string At(std::string_view text, size_t offset, size_t control_end) const {
    const auto match = matcher_->LongestAt(text, offset, control_end);
    return match.has_value() ? std::to_string(match->id) + ":" + std::to_string(match->bytes) : "";
  }

  Vocabulary vocabulary_;
  std::unique_ptr<AddedTokenMatcher> matcher_;
};

TEST_F(AddedTokenMatcherTest, TakesTheLongest) {
  EXPECT_EQ(At("\n\n\n\n", 0, 0), "4:3");
  EXPECT_EQ(At("\n\n\n\n", 1, 0), "4:3");
  EXPECT_EQ(At("\n\n\n\n", 2, 0), "3:1");
  EXPECT_EQ(At("a\xff", 1, 0), "7:1");
}

TEST_F(AddedTokenMatcherTest, ControlTokensOnlyWhereTheyAreAllowedToTheirEnd) {
  EXPECT_EQ(At("<a><b>", 0, 6), "2:6");
  EXPECT_EQ(At("<a><b>", 0, 5), "1:3");
  EXPECT_EQ(At("<a><b>", 0, 0), "1:3");
  EXPECT_EQ(At("<c>", 0, 3), "5:3");
  EXPECT_EQ(At("<c>", 0, 0), "");
}

TEST_F(AddedTokenMatcherTest, OrdinaryAndUnfinishedTextIsNoMatch) {
  EXPECT_EQ(At("x", 0, 1), "");
  EXPECT_EQ(At("<cd", 0, 3), "");
  EXPECT_EQ(At("<a", 0, 2), "");
  EXPECT_EQ(At("", 0, 0), "");
}

}  // namespace
}  // namespace baton
