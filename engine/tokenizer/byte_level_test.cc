#include "engine/tokenizer/byte_level.h"

#include <set>

#include "common/utf8.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

std::string CharacterOf(int byte) {
  std::string out;
  AppendByteLevel(static_cast<uint8_t>(byte), out);
  return out;
}

TEST(ByteLevelTest, PrintableBytesStandForThemselvesAndTheOthersFollowFromU0100) {
  EXPECT_EQ(CharacterOf('A'), "A");
  EXPECT_EQ(CharacterOf('~'), "~");
  EXPECT_EQ(CharacterOf(0), "\u0100");
  EXPECT_EQ(CharacterOf(' '), "\u0120");
  EXPECT_EQ(CharacterOf('\n'), "\u010a");
  EXPECT_EQ(CharacterOf(0x7f), "\u0121");
  EXPECT_EQ(CharacterOf(0xa0), "\u0142");
  EXPECT_EQ(CharacterOf(0xad), "\u0143");
  EXPECT_EQ(CharacterOf(0xe9), "\u00e9");
}

TEST(ByteLevelTest, EveryByteHasItsOwnCharacterAndComesBack) {
  std::set<std::string> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = CharacterOf(byte);
    EXPECT_EQ(CodePointLength(character), character.size());
    characters.insert(character);
    std::string back;
    AppendFromByteLevel(character, back);
    EXPECT_EQ(back, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(characters.size(), 256);
}

TEST(ByteLevelTest, WhatIsOutsideOfTheAlphabetStaysAsItIs) {
  std::string out;
  AppendFromByteLevel("a\u2581\u0144\xff z", out);
  EXPECT_EQ(out, "a\u2581\u0144\xff z");
}

}  // namespace
}  // namespace baton
