#include "engine/tokenizer/classified_text.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>

namespace baton {
namespace {

uint8_t Classify(UChar32 code_point) {
  const uint32_t category = U_MASK(u_charType(code_point));
  uint8_t classes = 0;
  if (category & U_GC_L_MASK) classes |= ClassifiedText::kLetter;
  if (category & U_GC_N_MASK) classes |= ClassifiedText::kNumber;
  if (category & U_GC_P_MASK) classes |= ClassifiedText::kPunctuation;
  if (u_isUWhiteSpace(code_point)) classes |= ClassifiedText::kSpace;
  if (code_point == '\r' || code_point == '\n') classes |= ClassifiedText::kLineEnd;
  if (code_point >= '0' && code_point <= '9') classes |= ClassifiedText::kAsciiDigit;
  constexpr std::string_view kSymbolsTakenAsPunctuation = "$+<=>^~|";
  if (code_point < 0x80 &&
      kSymbolsTakenAsPunctuation.find(static_cast<char>(code_point)) != std::string_view::npos) {
    classes |= ClassifiedText::kPunctuation;
  }
  return classes;
}

const std::array<uint8_t, 128>& AsciiClasses() {
  static const std::array<uint8_t, 128> classes = [] {
    std::array<uint8_t, 128> table = {};
    for (int c = 0; c < 128; ++c) table[c] = Classify(c);
    return table;
  }();
  return classes;
}

}  // namespace

ClassifiedText::ClassifiedText(std::string_view text) : text_(text) {
  const std::array<uint8_t, 128>& ascii = AsciiClasses();
  offsets_.reserve(text.size() + 1);
  classes_.reserve(text.size());
  const size_t size = text.size();
  for (size_t offset = 0; offset < size;) {
    offsets_.push_back(static_cast<uint32_t>(offset));
    UChar32 code_point;
    U8_NEXT_UNSAFE(text.data(), offset, code_point);
    classes_.push_back(code_point < 0x80 ? ascii[code_point] : Classify(code_point));
  }
  offsets_.push_back(static_cast<uint32_t>(size));
}

char ClassifiedText::Ascii(size_t i) const {
  const char first = text_[offsets_[i]];
  return static_cast<uint8_t>(first) < 0x80 ? first : static_cast<char>(0x80);
}

bool ClassifiedText::IsLongS(size_t i) const { return Slice(i, i + 1) == "\xc5\xbf"; }

}  // namespace baton
