#ifndef BATON_ENGINE_TOKENIZER_JINJA_CODE_POINTS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_CODE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::jinja {

// All of these need well-formed UTF-8 (baton::IsValidUtf8), and offsets at the first byte of a code point.

// Bytes of the code point at `offset`; `offset` < text.size().
size_t CodePointBytes(std::string_view text, size_t offset);
char32_t CodePointAt(std::string_view text, size_t offset);
// The offset at which the code point before `offset` begins; `offset` > 0.
size_t PreviousCodePoint(std::string_view text, size_t offset);
size_t CountCodePoints(std::string_view text);
void AppendCodePoint(char32_t code_point, std::string* out);

// White space as Python's str.isspace() has it.
bool IsSpace(char32_t code_point);

// Whole-string case mapping by Unicode's rules, in no particular language (a final sigma is a final sigma).
std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);

// The same for one code point, where one maps to one.
char32_t UpperOf(char32_t code_point);
char32_t LowerOf(char32_t code_point);

// Letters and decimal digits by Unicode category.
bool IsLetter(char32_t code_point);
bool IsDigit(char32_t code_point);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_CODE_POINTS_H_
