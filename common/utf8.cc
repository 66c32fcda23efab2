#include "common/utf8.h"

#include <cstdint>

namespace baton {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// What may follow a first byte (table 3-7 of the Unicode standard): how many bytes, and the range of the
// second; any third and fourth lie in 80..BF.
struct Sequence {
  size_t length;  // 0: the byte begins nothing.
  uint8_t second_low;
  uint8_t second_high;
};

Sequence SequenceOf(uint8_t first) {
  if (first < 0x80) return {1, 0, 0};
  if (first < 0xc2) return {0, 0, 0};
  if (first < 0xe0) return {2, 0x80, 0xbf};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3, 0x80, 0xbf};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first < 0xf4) return {4, 0x80, 0xbf};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

// How many bytes at the start of `text`, which is not empty, form a code point or the beginning of one; at
// least 1.
struct Prefix {
  size_t bytes;
  bool whole;
};

Prefix PrefixOf(std::string_view text) {
  const Sequence sequence = SequenceOf(static_cast<uint8_t>(text[0]));
  if (sequence.length == 0) return {1, false};
  for (size_t i = 1; i < sequence.length; ++i) {
    if (i == text.size()) return {i, false};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? sequence.second_low : 0x80;
    const uint8_t high = i == 1 ? sequence.second_high : 0xbf;
    if (byte < low || byte > high) return {i, false};
  }
  return {sequence.length, true};
}

}  // namespace

size_t CodePointLength(std::string_view text) {
  if (text.empty()) return 0;
  const Prefix prefix = PrefixOf(text);
  return prefix.whole ? prefix.bytes : 0;
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = CodePointLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Prefix prefix = PrefixOf(text);
    out += prefix.whole ? text.substr(0, prefix.bytes) : kReplacement;
    text.remove_prefix(prefix.bytes);
  }
  return out;
}

std::string_view TruncateUtf8(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace baton
