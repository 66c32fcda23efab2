#include "engine/tokenizer/jinja/text.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::jinja {
namespace {

// The text with message characters in brackets.
std::string Marked(const Text& text) {
  std::string marked;
  size_t begin = 0;
  for (const Text::Segment& segment : text.segments()) {
    const std::string part(text.bytes().substr(begin, segment.end - begin));
    marked += segment.origin == Origin::kMessage ? "[" + part + "]" : part;
    begin = segment.end;
  }
  EXPECT_EQ(begin, text.size());
  return marked;
}

Text Mixed() {
  Text text("ab", Origin::kTemplate);
  text.Append("cd", Origin::kMessage);
  text.Append("ef", Origin::kTemplate);
  return text;
}

TEST(TextTest, AppendJoinsSegmentsOfOneOrigin) {
  Text text = Mixed();
  text.Append("", Origin::kMessage);
  text.Append("g", Origin::kTemplate);
  EXPECT_EQ(Marked(text), "ab[cd]efg");
  EXPECT_EQ(text.segments().size(), 3);
}

TEST(TextTest, SliceKeepsOrigins) {
  EXPECT_EQ(Marked(Mixed().Slice(1, 5)), "b[cd]e");
  EXPECT_EQ(Marked(Mixed().Slice(2, 4)), "[cd]");
  EXPECT_EQ(Marked(Mixed().Slice(3, 4)), "[d]");
  EXPECT_EQ(Marked(Mixed().Slice(4, 4)), "");
  EXPECT_EQ(Marked(Mixed().Slice(0, 6)), "ab[cd]ef");
}

TEST(TextTest, OriginOfRange) {
  EXPECT_EQ(Mixed().OriginOf(0, 2), Origin::kTemplate);
  EXPECT_EQ(Mixed().OriginOf(0, 3), Origin::kMessage);
  EXPECT_EQ(Mixed().OriginOf(3, 6), Origin::kMessage);
  EXPECT_EQ(Mixed().OriginOf(4, 6), Origin::kTemplate);
  EXPECT_EQ(Mixed().OriginOf(2, 2), Origin::kTemplate);
  EXPECT_EQ(Mixed().origin(), Origin::kMessage);
  EXPECT_EQ(Text().origin(), Origin::kTemplate);
}

TEST(TextTest, StripTakesUnicodeWhiteSpace) {
  Text text(" \u3000", Origin::kTemplate);
  text.Append("\u00a0x y\n", Origin::kMessage);
  text.Append("\u2028", Origin::kTemplate);
  EXPECT_EQ(Marked(text.Strip(true, true)), "[x y]");
  EXPECT_EQ(Marked(text.Strip(false, true)), " \u3000[\u00a0x y]");
  EXPECT_EQ(Marked(text.Strip("\u2028 \n", true, true)), "\u3000[\u00a0x y]");
}

TEST(TextTest, WithBytesFollowsCodePoints) {
  Text text("a\u00e9", Origin::kTemplate);
  text.Append("\U0001f600z", Origin::kMessage);
  EXPECT_EQ(Marked(text.WithBytes("XYZW")), "XY[ZW]");
  EXPECT_EQ(Marked(text.WithBytes("\u00c9A\u00c9A")), "\u00c9A[\u00c9A]");
}

TEST(TextTest, WithBytesOfAnotherLengthIsAllMessageText) {
  EXPECT_EQ(Marked(Mixed().WithBytes("ABCDEFG")), "[ABCDEFG]");
  EXPECT_EQ(Marked(Text("ab", Origin::kTemplate).WithBytes("ABC")), "ABC");
}

}  // namespace
}  // namespace baton::jinja
