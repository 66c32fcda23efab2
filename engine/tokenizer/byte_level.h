#ifndef BATON_ENGINE_TOKENIZER_BYTE_LEVEL_H_
#define BATON_ENGINE_TOKENIZER_BYTE_LEVEL_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace baton {

// The alphabet in which byte-level BPE vocabularies spell bytes: printable Latin-1 characters stand for
// themselves, the other 68 bytes, in order, for U+0100 and up (so a space is U+0120).

// Appends the UTF-8 of the character that stands for `byte`.
void AppendByteLevel(uint8_t byte, std::string& out);

// Appends the bytes that `text` spells. A character outside of the alphabet, and a byte that is no UTF-8,
// stay as they are.
void AppendFromByteLevel(std::string_view text, std::string& out);

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_BYTE_LEVEL_H_
