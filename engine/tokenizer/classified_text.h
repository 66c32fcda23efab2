#ifndef BATON_ENGINE_TOKENIZER_CLASSIFIED_TEXT_H_
#define BATON_ENGINE_TOKENIZER_CLASSIFIED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace baton {

// The code points of a text with what the pre-tokenizers' rules ask of them. Borrows the text.
class ClassifiedText {
 public:
  // Classes of a code point; a letter, a number and white space exclude each other.
  static constexpr uint8_t kLetter = 1;        // \p{L}
  static constexpr uint8_t kNumber = 2;        // \p{N}
  static constexpr uint8_t kSpace = 4;         // \s, Unicode's White_Space
  static constexpr uint8_t kLineEnd = 8;       // CR, LF (white space too)
  static constexpr uint8_t kPunctuation = 16;  // \p{P} and $ + < = > ^ ~ |
  static constexpr uint8_t kAsciiDigit = 32;

  explicit ClassifiedText(std::string_view text);  // valid UTF-8, below 4 GiB

  size_t size() const { return classes_.size(); }  // code points
  bool Is(size_t i, uint8_t classes) const { return (classes_[i] & classes) != 0; }
  // True for what is no letter, number or white space.
  bool IsSign(size_t i) const { return !Is(i, kLetter | kNumber | kSpace); }
  // The code point if it is ASCII, else 0x80.
  char Ascii(size_t i) const;
  bool IsLongS(size_t i) const;  // U+017F, which is an s where case does not count
  std::string_view Slice(size_t begin, size_t end) const {
    return text_.substr(offsets_[begin], offsets_[end] - offsets_[begin]);
  }

 private:
  std::string_view text_;
  std::vector<uint32_t> offsets_;  // [size + 1] bytes into text_
  std::vector<uint8_t> classes_;   // [size]
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_CLASSIFIED_TEXT_H_
