#include "router/answer_text.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "tests/support/byte_tokenizer.h"

namespace baton {
namespace {

// What a client has received after each byte of `answer`, by "|", and what stopped it.
std::string Feed(std::vector<std::string> stops, std::string_view answer, bool include_stop = false,
                 size_t stop_after = 0) {
  const ByteTokenizer tokenizer;
  AnswerText text(&tokenizer, /*skip_special_tokens=*/true, std::move(stops), include_stop);
  std::string seen;
  size_t count = 0;
  for (unsigned char byte : answer) {
    const AnswerText::Piece piece = text.Push(byte, ++count >= stop_after);
    seen += piece.text + "|";
    if (piece.stop != nullptr) return seen + " stopped by " + *piece.stop;
  }
  return seen + text.Finish();
}

TEST(AnswerText, ReleasesEachCodePointWhenItIsWhole) {
  EXPECT_EQ(Feed({}, "ab"), "a|b|");
  EXPECT_EQ(Feed({}, "\xC3\xA9!"), "|\xC3\xA9|!|");
  EXPECT_EQ(Feed({}, "a\xE2\x82"), "a|||\xEF\xBF\xBD");
}

TEST(AnswerText, HoldsBackOnlyWhatMayBecomeAStopString) {
  EXPECT_EQ(Feed({"END"}, "aEbEND!"), "a||Eb|||| stopped by END");
  EXPECT_EQ(Feed({"aab"}, "aaab"),
            "|"
            "|"
            "a|"
            "| stopped by aab");
  EXPECT_EQ(Feed({"END"}, "xEN"), "x|||EN");
}

TEST(AnswerText, TheEarliestStopStringCounts) {
  EXPECT_EQ(Feed({"cd", "bcd"}, "abcd"), "a|||| stopped by bcd");
  EXPECT_EQ(Feed({"b", "ab"}, "ab"), "|| stopped by ab");
}

TEST(AnswerText, MayKeepTheStopString) { EXPECT_EQ(Feed({"END"}, "aEND", true), "a|||END| stopped by END"); }

TEST(AnswerText, StopStringsCountOnlyOnceTheyMay) {
  EXPECT_EQ(Feed({"a"}, "aaba", false, 4), "a|a|b|| stopped by a");
}

TEST(AnswerText, AStopStringMayBeBytesOfAWiderCharacter) {
  EXPECT_EQ(Feed({"\xC3\xA9"}, "x\xC3\xA9y"), "x||| stopped by \xC3\xA9");
}

}  // namespace
}  // namespace baton
