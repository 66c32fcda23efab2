#include "engine/tokenizer/jinja/string_literal.h"

#include <charconv>
#include <cstdint>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {
namespace {

constexpr std::string_view kSimpleEscapes = "ntrbfva'\"\\";
constexpr std::string_view kSimpleValues = "\n\t\r\b\f\v\a'\"\\";

bool IsOctal(char c) { return c >= '0' && c <= '7'; }
bool IsHighSurrogate(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// `digits` hexadecimal digits at the start of `text`.
absl::StatusOr<uint32_t> ReadHex(std::string_view text, size_t digits) {
  uint32_t value = 0;
  const char* const end = text.data() + std::min(digits, text.size());
  if (text.size() < digits || std::from_chars(text.data(), end, value, 16).ptr != end) {
    return Error("an escape in a string needs ", digits, " hexadecimal digits");
  }
  return value;
}

// \x, \u and \U: `body` begins after the letter. Advances *offset over the digits, and over the second half
// of a pair.
absl::StatusOr<uint32_t> ReadCodePoint(std::string_view body, char letter, size_t* offset) {
  const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
  ASSIGN_OR_RETURN(uint32_t value, ReadHex(body.substr(*offset), digits));
  *offset += digits;
  if (IsHighSurrogate(value) && body.substr(*offset, 2) == "\\u") {
    ASSIGN_OR_RETURN(const uint32_t low, ReadHex(body.substr(*offset + 2), 4));
    if (IsLowSurrogate(low)) {
      *offset += 6;
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
  }
  if (value > 0x10FFFF || IsHighSurrogate(value) || IsLowSurrogate(value)) {
    return Error("an escape in a string names no character");
  }
  return value;
}

}  // namespace

absl::StatusOr<std::string> DecodeStringLiteral(std::string_view body) {
  std::string decoded;
  for (size_t offset = 0; offset < body.size();) {
    if (body[offset] != '\\' || offset + 1 == body.size()) {
      decoded.push_back(body[offset++]);
      continue;
    }
    const char letter = body[offset + 1];
    offset += 2;
    if (const size_t simple = kSimpleEscapes.find(letter); simple != std::string_view::npos) {
      decoded.push_back(kSimpleValues[simple]);
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      ASSIGN_OR_RETURN(const uint32_t value, ReadCodePoint(body, letter, &offset));
      AppendCodePoint(value, &decoded);
    } else if (IsOctal(letter)) {
      uint32_t value = letter - '0';
      for (int i = 0; i < 2 && offset < body.size() && IsOctal(body[offset]); ++i)
        value = value * 8 + (body[offset++] - '0');
      AppendCodePoint(value, &decoded);
    } else if (letter !=
               '\n') {  // A backslash at the end of a line joins the lines; any other stands for itself.
      decoded.push_back('\\');
      decoded.push_back(letter);
    }
  }
  return decoded;
}

}  // namespace baton::jinja
