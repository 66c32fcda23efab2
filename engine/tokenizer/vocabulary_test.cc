#include "engine/tokenizer/vocabulary.h"

#include <string>

#include "engine/model_file/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Vocabulary> ReadFrom(const std::vector<std::string>& tokens,
                                    const std::vector<int32_t>& kinds) {
  GgufWriter writer;
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  if (!kinds.empty()) writer.AddInts("tokenizer.ggml.token_type", kinds);
  const std::vector<std::byte> bytes = writer.Serialize();
  const auto file = ModelFile::Parse(bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  return Vocabulary::Read(**file);
}

void ExpectRefused(const std::vector<std::string>& tokens, const std::vector<int32_t>& kinds,
                   const std::string& text) {
  const absl::Status status = ReadFrom(tokens, kinds).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(VocabularyTest, GivesTextsKindsAndIds) {
  const auto vocabulary = ReadFrom({"<s>", "a", "", "b\xff"}, {3, 1, 5, 4});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->size(), 4);
  EXPECT_EQ(vocabulary->text(3), "b\xff");
  EXPECT_EQ(vocabulary->text(2), "");
  EXPECT_EQ(vocabulary->kind(3), TokenKind::kUserDefined);
  EXPECT_TRUE(vocabulary->is_control(0));
  EXPECT_FALSE(vocabulary->is_control(3));
  EXPECT_EQ(vocabulary->Find("b\xff"), 3);
  EXPECT_EQ(vocabulary->Find("c"), std::nullopt);
  EXPECT_EQ(vocabulary->Find(""), std::nullopt);
  EXPECT_EQ(vocabulary->longest_text_bytes(), 3);
}

TEST(VocabularyTest, TokensAreOrdinaryWhereTheFileDoesNotSay) {
  const auto vocabulary = ReadFrom({"<s>", "a"}, {});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->kind(0), TokenKind::kNormal);
}

TEST(VocabularyTest, RefusesBadLists) {
  ExpectRefused({}, {}, "tokens is missing");
  ExpectRefused({"a", "b", "a"}, {}, "tokens[2] is the same text as [0]");
  ExpectRefused({"a", "b"}, {1}, "token_type has 1 elements");
  ExpectRefused({"a", "b"}, {1, 0}, "token_type[1] is 0, must be 1 to 6");
  ExpectRefused({"a", "b"}, {7, 1}, "token_type[0] is 7, must be 1 to 6");
  ExpectRefused({"a", std::string(4097, 'x')}, {}, "tokens[1] has 4097 bytes, limit 4096");
  ExpectRefused({"a", std::string(513, 'x')}, {1, 4}, "tokens[1] has 513 bytes, limit 512");
}

class SpecialTokensTest : public testing::Test {
 protected:
  static absl::StatusOr<SpecialTokens> Read(const std::function<void(GgufWriter&)>& add,
                                            bool adds_bos_by_default) {
    GgufWriter writer;
    const std::vector<std::string> tokens = {"a", "<|im_end|>", "</s>", "<s>", "<|eot_id|>"};
    writer.AddStrings("tokenizer.ggml.tokens", tokens);
    writer.AddInts("tokenizer.ggml.token_type", {1, 3, 3, 3, 1});
    add(writer);
    const std::vector<std::byte> bytes = writer.Serialize();
    const auto file = ModelFile::Parse(bytes);
    EXPECT_TRUE(file.ok()) << file.status();
    const auto vocabulary = Vocabulary::Read(**file);
    EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
    return ReadSpecialTokens(**file, *vocabulary, adds_bos_by_default);
  }
};

TEST_F(SpecialTokensTest, EndsAreTheFilesIdsAndControlTokensOfKnownNames) {
  const auto special =
      Read([](GgufWriter& writer) { writer.AddUint("tokenizer.ggml.eos_token_id", 2); }, false);
  ASSERT_TRUE(special.ok()) << special.status();
  // "<|eot_id|>" is an ordinary token of this file.
  EXPECT_THAT(special->end_of_generation, ElementsAre(1, 2));
  EXPECT_EQ(special->eos, 2);
  EXPECT_EQ(special->bos, std::nullopt);
}

TEST_F(SpecialTokensTest, AFileThatDoesNotSayAddsBosByDefaultOnlyWhereItHasOne) {
  const auto name_bos = [](GgufWriter& writer) { writer.AddUint("tokenizer.ggml.bos_token_id", 3); };
  EXPECT_TRUE(Read(name_bos, true)->add_bos);
  EXPECT_FALSE(Read(name_bos, false)->add_bos);
  EXPECT_FALSE(Read([](GgufWriter&) {}, true)->add_bos);
}

TEST_F(SpecialTokensTest, RefusesIdsOutsideOfTheVocabularyAndMissingOnes) {
  const absl::Status outside =
      Read([](GgufWriter& writer) { writer.AddUint("tokenizer.ggml.eot_token_id", 5); }, false).status();
  EXPECT_THAT(std::string(outside.message()), HasSubstr("eot_token_id is 5, the vocabulary has 5 tokens"));
  const absl::Status missing =
      Read([](GgufWriter& writer) { writer.AddBool("tokenizer.ggml.add_eos_token", true); }, false).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
