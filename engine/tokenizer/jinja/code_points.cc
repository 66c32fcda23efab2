#include "engine/tokenizer/jinja/code_points.h"

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>

#include "common/check.h"

namespace baton::jinja {
namespace {

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

using CaseMapper = int32_t (*)(const UCaseMap*, char*, int32_t, const char*, int32_t, UErrorCode*);

std::string MapCase(std::string_view text, CaseMapper mapper) {
  UErrorCode error = U_ZERO_ERROR;
  UCaseMap* map = ucasemap_open("", 0, &error);
  BATON_CHECK(U_SUCCESS(error));
  std::string mapped(text.size(), '\0');
  int32_t bytes = mapper(map, mapped.data(), static_cast<int32_t>(mapped.size()), text.data(),
                         static_cast<int32_t>(text.size()), &error);
  if (error == U_BUFFER_OVERFLOW_ERROR) {
    error = U_ZERO_ERROR;
    mapped.resize(bytes);
    bytes = mapper(map, mapped.data(), bytes, text.data(), static_cast<int32_t>(text.size()), &error);
  }
  ucasemap_close(map);
  BATON_CHECK(U_SUCCESS(error));
  mapped.resize(bytes);
  return mapped;
}

}  // namespace

size_t CodePointBytes(std::string_view text, size_t offset) {
  const uint8_t lead = static_cast<uint8_t>(text[offset]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

char32_t CodePointAt(std::string_view text, size_t offset) {
  const uint8_t lead = static_cast<uint8_t>(text[offset]);
  if (lead < 0x80) return lead;
  const size_t bytes = CodePointBytes(text, offset);
  char32_t code_point = lead & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    code_point = code_point << 6 | (static_cast<uint8_t>(text[offset + i]) & 0x3F);
  }
  return code_point;
}

size_t PreviousCodePoint(std::string_view text, size_t offset) {
  do {
    --offset;
  } while (offset > 0 && IsContinuation(text[offset]));
  return offset;
}

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += !IsContinuation(byte);
  return count;
}

void AppendCodePoint(char32_t code_point, std::string* out) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->append({static_cast<char>(0xC0 | code_point >> 6), tail(0)});
  } else if (code_point < 0x10000) {
    out->append({static_cast<char>(0xE0 | code_point >> 12), tail(6), tail(0)});
  } else {
    out->append({static_cast<char>(0xF0 | code_point >> 18), tail(12), tail(6), tail(0)});
  }
}

bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string ToUpper(std::string_view text) { return MapCase(text, ucasemap_utf8ToUpper); }
std::string ToLower(std::string_view text) { return MapCase(text, ucasemap_utf8ToLower); }

char32_t UpperOf(char32_t code_point) { return u_toupper(static_cast<UChar32>(code_point)); }
char32_t LowerOf(char32_t code_point) { return u_tolower(static_cast<UChar32>(code_point)); }

bool IsLetter(char32_t code_point) { return u_isalpha(static_cast<UChar32>(code_point)); }
bool IsDigit(char32_t code_point) { return u_isdigit(static_cast<UChar32>(code_point)); }

}  // namespace baton::jinja
