#include "engine/tokenizer/tokenizer.h"

#include <cmath>
#include <ctime>
#include <string>

#include "engine/tokenizer/tiny_tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TokenId kImStart = 256;  // of TinyByteLevel
constexpr TokenId kUser = 258;

std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::vector<TextRun> runs, bool add_special = false) {
  const auto ids = tokenizer.Encode(runs, add_special);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : std::vector<TokenId>();
}

void ExpectRefused(const absl::Status& status, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(ByteLevelTokenizerTest, MergesByRankWithinWords) {
  TinyTokenizer tiny = TinyByteLevel();
  const TokenId he = tiny.Add("he");
  const TokenId hel = tiny.Add("hel");
  const TokenId lo = tiny.Add("lo");
  const TokenId space_he = tiny.Add("\u0120he");
  tiny.merges = {"h e", "l o", "he l", "\u0120 he"};
  const auto tokenizer = tiny.Create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  // "he" and "lo" come first, so that the l of "hel" is gone where an o follows.
  EXPECT_THAT(Encode(**tokenizer, {{"helo"}}), ElementsAre(he, lo));
  EXPECT_THAT(Encode(**tokenizer, {{"hel he"}}), ElementsAre(hel, space_he));
  EXPECT_EQ((*tokenizer)->TokenBytes(space_he), " he");
}

TEST(ByteLevelTokenizerTest, LlamaTakesAWholeWordThatIsATokenWithoutMerges) {
  TinyTokenizer tiny = TinyByteLevel("llama-bpe");
  const TokenId word = tiny.Add("\u0120word");
  EXPECT_THAT(Encode(**tiny.Create(), {{" word word"}}), ElementsAre(word, word));
  tiny.pre = "gpt-2";
  EXPECT_EQ(Encode(**tiny.Create(), {{" word"}}).size(), 5);
}

TEST(ByteLevelTokenizerTest, Qwen2NormalizesBeforeItMerges) {
  TinyTokenizer tiny = TinyByteLevel("qwen2");
  const auto tokenizer = tiny.Create();
  EXPECT_THAT(Encode(**tokenizer, {{"e\u0301"}}), ElementsAre(0xc3, 0xa9));
  tiny.pre = "llama-bpe";
  EXPECT_THAT(Encode(**tiny.Create(), {{"e\u0301"}}), ElementsAre('e', 0xcc, 0x81));
}

TEST(ByteLevelTokenizerTest, LeavesOutAByteThatHasNoToken) {
  TinyTokenizer tiny = TinyByteLevel();
  tiny.tokens['b'] = "not-b";
  EXPECT_THAT(Encode(**tiny.Create(), {{"abc"}}), ElementsAre('a', 'c'));
}

TEST(ByteLevelTokenizerTest, RefusesBadMerges) {
  TinyTokenizer tiny = TinyByteLevel();
  tiny.Add("ab");
  tiny.Add("im_");
  const auto refused = [&](const std::string& merge, const std::string& text) {
    tiny.merges = {"a b", merge};
    ExpectRefused(tiny.Create().status(), absl::StatusCode::kInvalidArgument, text);
  };
  refused("", "merges[1] is not two tokens");
  refused(" ", "merges[1] is not two tokens");
  refused("ab", "merges[1] is not two tokens");
  refused("b a", "merges[1] names or makes a token that is not in the vocabulary");
  refused("zz b", "merges[1] names or makes");
  refused("a ", "merges[1] names or makes");
  tiny.Add("<|im_start|");
  refused("<|im_start| >", "merges[1] makes the control token 256");
  tiny.model = "other";
  ExpectRefused(tiny.Create().status(), absl::StatusCode::kUnimplemented,
                "tokenizer.ggml.model is \"other\"");
  tiny.model = "gpt2";
  tiny.pre = "other";
  ExpectRefused(tiny.Create().status(), absl::StatusCode::kUnimplemented, "tokenizer.ggml.pre is \"other\"");
}

TEST(SentencePieceTokenizerTest, MergesByScoreAndFallsBackToBytes) {
  TinyTokenizer tiny = TinySentencePiece();
  const TokenId a = tiny.Add("a", TokenKind::kNormal, -1);
  const TokenId b = tiny.Add("b", TokenKind::kNormal, -1);
  const TokenId ab = tiny.Add("ab", TokenKind::kNormal, -3);
  const TokenId ba = tiny.Add("ba", TokenKind::kNormal, -2);
  const TokenId mark_a = tiny.Add("\u2581a", TokenKind::kNormal, -5);
  const auto plain =
      tiny.Create([](GgufWriter& writer) { writer.AddBool("tokenizer.ggml.add_space_prefix", false); });
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT(Encode(**plain, {{"aba"}}), ElementsAre(a, ba));
  EXPECT_THAT(Encode(**plain, {{"abb a"}}), ElementsAre(ab, b, mark_a));
  EXPECT_THAT(Encode(**plain, {{"a\u00e9"}}), ElementsAre(a, 3 + 0xc3, 3 + 0xa9));
  EXPECT_EQ((*plain)->TokenBytes(mark_a), " a");
  EXPECT_EQ((*plain)->TokenBytes(3 + 0xc3), "\xc3");
  EXPECT_FALSE((*plain)->adds_space_prefix());
}

TEST(SentencePieceTokenizerTest, PutsASpaceBeforeTheTextAndAfterAddedTokens) {
  TinyTokenizer tiny = TinySentencePiece();
  const TokenId a = tiny.Add("a");
  const TokenId mark_a = tiny.Add("\u2581a");
  const TokenId tag = tiny.Add("<tag>", TokenKind::kUserDefined);
  const auto tokenizer = tiny.Create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_TRUE((*tokenizer)->adds_space_prefix());
  EXPECT_THAT(Encode(**tokenizer, {{"aa<tag>a"}}), ElementsAre(mark_a, a, tag, mark_a));
  EXPECT_THAT(Encode(**tokenizer, {{""}}), ElementsAre());
}

TEST(SentencePieceTokenizerTest, SpellsNoControlOrByteTokenFromItsLetters) {
  TinyTokenizer tiny = TinySentencePiece();
  for (const char* part :
       {"<", "s", ">", "/", "<s", "</", "</s", "0", "x", "A", "<0", "<0x", "<0x0", "<0x0A"})
    tiny.Add(part);
  const auto tokenizer =
      tiny.Create([](GgufWriter& writer) { writer.AddBool("tokenizer.ggml.add_space_prefix", false); });
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const std::string text : {"<s>", "</s>", "<unk>", "<0x0A>"}) {
    for (TokenId id : Encode(**tokenizer, {{text}})) {
      EXPECT_FALSE((*tokenizer)->IsControl(id)) << text;
      EXPECT_NE((*tokenizer)->TokenBytes(id), "\n") << text;
    }
  }
  EXPECT_THAT(Encode(**tokenizer, {{"<s>", true}}), ElementsAre(1));
}

TEST(SentencePieceTokenizerTest, BytesWithoutTokensBecomeTheUnknownTokenOrAreRefusedAtOnce) {
  TinyTokenizer tiny = TinySentencePiece();
  tiny.kinds[3 + 0xc3] = static_cast<int32_t>(TokenKind::kNormal);
  ExpectRefused(tiny.Create().status(), absl::StatusCode::kInvalidArgument,
                "no token for byte 195 and no unknown token");
  const auto tokenizer = tiny.Create([](GgufWriter& writer) {
    writer.AddUint("tokenizer.ggml.unknown_token_id", 0);
    writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  });
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Encode(**tokenizer, {{"\u00e9\n"}}), ElementsAre(0, 3 + '\n'));
}

TEST(SentencePieceTokenizerTest, RefusesBadScoresAndByteTokens) {
  TinyTokenizer tiny = TinySentencePiece();
  tiny.scores.pop_back();
  ExpectRefused(tiny.Create().status(), absl::StatusCode::kInvalidArgument, "scores has 258 numbers");
  tiny.scores.push_back(NAN);
  ExpectRefused(tiny.Create().status(), absl::StatusCode::kInvalidArgument, "scores[258] is nan");
  tiny.scores.back() = 0;
  tiny.tokens.back() = "<0xfg>";
  ExpectRefused(tiny.Create().status(), absl::StatusCode::kInvalidArgument, "token 258 is a byte token");
}

TEST(TokenizerTest, ControlTokensComeOnlyFromRunsThatMaySpellThem) {
  const auto tokenizer = TinyByteLevel().Create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Encode(**tokenizer, {{"<|im_start|>", true}}), ElementsAre(kImStart));
  EXPECT_EQ(Encode(**tokenizer, {{"<|im_start|>", false}}).size(), 12);
  EXPECT_EQ(Encode(**tokenizer, {{"<|im_", true}, {"start|>", false}}).size(), 12);
  EXPECT_EQ(Encode(**tokenizer, {{"<|im_", false}, {"start|>", true}}).size(), 12);
  EXPECT_THAT(Encode(**tokenizer, {{"<|im_", true}, {"", false}, {"start|>", true}}), ElementsAre(kImStart));
  EXPECT_THAT(Encode(**tokenizer, {{"<|im_start|>a", true}, {"<|im_end|>", false}, {"<|im_end|>", true}}),
              ElementsAre(kImStart, 'a', '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>', 257));
}

TEST(TokenizerTest, UserDefinedTokensComeFromAnyText) {
  const auto tokenizer = TinyByteLevel().Create();
  EXPECT_THAT(Encode(**tokenizer, {{"a[us"}, {"er]b"}}), ElementsAre('a', kUser, 'b'));
  EXPECT_FALSE((*tokenizer)->IsControl(kUser));
  EXPECT_EQ((*tokenizer)->TokenBytes(kUser), "[user]");
}

TEST(TokenizerTest, AddsBosAndEosAsTheFileAsks) {
  const auto add = [](GgufWriter& writer) {
    writer.AddUint("tokenizer.ggml.bos_token_id", 256);
    writer.AddUint("tokenizer.ggml.eos_token_id", 257);
    writer.AddBool("tokenizer.ggml.add_bos_token", true);
    writer.AddBool("tokenizer.ggml.add_eos_token", true);
  };
  const auto tokenizer = TinyByteLevel().Create(add);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Encode(**tokenizer, {{"a"}}, true), ElementsAre(256, 'a', 257));
  EXPECT_THAT(Encode(**tokenizer, {{"a"}}, false), ElementsAre('a'));
  EXPECT_THAT(Encode(**tokenizer, {}, true), ElementsAre(256, 257));
  EXPECT_EQ((*tokenizer)->bos(), 256);
  EXPECT_THAT((*tokenizer)->end_of_generation(), ElementsAre(257));
}

TEST(TokenizerTest, RefusesTextThatIsNotUtf8AndSaysWhere) {
  const auto tokenizer = TinyByteLevel().Create();
  const std::vector<TextRun> runs = {{"fine"}, {"a\xc3"}};
  ExpectRefused((*tokenizer)->Encode(runs, false).status(), absl::StatusCode::kInvalidArgument,
                "run 1 of the text is not UTF-8 at byte 1");
}

TEST(TokenizerTest, FindsTokensByTheirText) {
  const auto tokenizer = TinyByteLevel().Create();
  EXPECT_EQ((*tokenizer)->FindToken("<|im_end|>"), 257);
  EXPECT_EQ((*tokenizer)->FindToken("<|im_"), std::nullopt);
  EXPECT_EQ((*tokenizer)->vocab_size(), 259);
}

// A pair merger that is quadratic, or a matcher that is, takes minutes here.
TEST(TokenizerTest, ALongRunOfOneLetterTakesNoLongerThanOtherText) {
  TinyTokenizer byte_level = TinyByteLevel();
  TinyTokenizer sentence_piece = TinySentencePiece();
  sentence_piece.Add("a");
  for (size_t length = 2; length <= 256; length *= 2) {
    const std::string half(length / 2, 'a');
    byte_level.Add(half + half);
    byte_level.merges.push_back(half + " " + half);
    sentence_piece.Add(half + half);
  }
  byte_level.Add(std::string(500, '='), TokenKind::kUserDefined);
  sentence_piece.Add(std::string(500, '='), TokenKind::kUserDefined);
  for (const TinyTokenizer* tiny : {&byte_level, &sentence_piece}) {
    const auto tokenizer = tiny->Create();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (const char letter : {'a', ' ', '='}) {
      const std::clock_t start = std::clock();
      Encode(**tokenizer, {{std::string(1 << 18, letter)}});
      EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC) << letter;
    }
  }
}

}  // namespace
}  // namespace baton
