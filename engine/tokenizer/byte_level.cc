#include "engine/tokenizer/byte_level.h"

#include <array>

#include "common/utf8.h"

namespace baton {
namespace {

constexpr int kFirstStandIn = 0x100;
constexpr int kStandIns = 68;

constexpr bool StandsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<uint16_t, 256> character = {};                  // by byte
  std::array<int16_t, kFirstStandIn + kStandIns> byte = {};  // by character; -1 outside of the alphabet
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  int next = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = StandsForItself(byte) ? byte : next++;
    alphabet.character[byte] = static_cast<uint16_t>(character);
    alphabet.byte[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

void AppendByteLevel(uint8_t byte, std::string& out) {
  const uint16_t character = kAlphabet.character[byte];
  if (character < 0x80) {
    out += static_cast<char>(character);
    return;
  }
  out += static_cast<char>(0xc0 | character >> 6);
  out += static_cast<char>(0x80 | (character & 0x3f));
}

void AppendFromByteLevel(std::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t length = CodePointLength(text);
    int character = -1;
    if (length == 1) character = text[0];
    if (length == 2) character = (text[0] & 0x1f) << 6 | (text[1] & 0x3f);
    if (length == 0) length = 1;
    if (character >= 0 && character < kAlphabet.byte.size() && kAlphabet.byte[character] >= 0) {
      out += static_cast<char>(kAlphabet.byte[character]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

}  // namespace baton
