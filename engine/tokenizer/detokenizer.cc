#include "engine/tokenizer/detokenizer.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "common/utf8.h"

namespace baton {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool Between(char c, uint8_t low, uint8_t high) {
  return static_cast<uint8_t>(c) >= low && static_cast<uint8_t>(c) <= high;
}

// Bytes of the longest start of `text` that is also the start of some code point longer than that; 0 when its
// first byte begins none. `text` does not begin with a whole code point.
size_t PartialCodePointLength(std::string_view text) {
  const char lead = text[0];
  if (!Between(lead, 0xc2, 0xf4)) return 0;
  if (text.size() == 1) return 1;
  // The second byte's range keeps out overlong forms, surrogates and what lies above U+10FFFF.
  const uint8_t low = lead == '\xe0' ? 0xa0 : lead == '\xf0' ? 0x90 : 0x80;
  const uint8_t high = lead == '\xed' ? 0x9f : lead == '\xf4' ? 0x8f : 0xbf;
  if (!Between(text[1], low, high) || Between(lead, 0xc2, 0xdf)) return 1;
  if (text.size() == 2 || !Between(text[2], 0x80, 0xbf) || Between(lead, 0xe0, 0xef)) return 2;
  return 3;
}

}  // namespace

Detokenizer::Detokenizer(const Tokenizer* tokenizer, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

std::string Detokenizer::Push(TokenId token) {
  if (skip_special_tokens_ && tokenizer_->IsControl(token)) return "";
  std::string_view bytes = tokenizer_->TokenBytes(token);
  if (std::exchange(at_start_, false) && tokenizer_->adds_space_prefix() && !bytes.empty() &&
      bytes[0] == ' ') {
    bytes.remove_prefix(1);
  }
  const std::string all = std::exchange(pending_, "").append(bytes);
  std::string text;
  for (std::string_view rest = all; !rest.empty();) {
    if (const size_t whole = CodePointLength(rest); whole > 0) {
      text += rest.substr(0, whole);
      rest.remove_prefix(whole);
      continue;
    }
    const size_t partial = PartialCodePointLength(rest);
    if (partial == rest.size()) {
      pending_ = rest;
      break;
    }
    text += kReplacement;
    rest.remove_prefix(partial == 0 ? 1 : partial);
  }
  return text;
}

std::string Detokenizer::Finish() {
  return std::exchange(pending_, "").empty() ? std::string() : std::string(kReplacement);
}

}  // namespace baton
