#ifndef BATON_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
#define BATON_ENGINE_TOKENIZER_PRE_TOKENIZER_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace baton {

// The rules by which byte-level BPE cuts a text into words before it merges; none merges across a cut.
//   kGpt2      contractions ('s 't 're 've 'm 'll 'd), else runs of letters, of digits or of other signs,
//   each with one
//              space before it; white space keeps its last character for the next word.
//   kSmollm    every digit alone, then kGpt2 within what is between.
//   kLlamaBpe  contractions in any case; letters with one sign before them; digits by up to three; signs with
//   one space
//              before them and the line ends after; white space up to its last line end; white space as
//              kGpt2.
//   kQwen2     the same with every digit alone.
//   kDefault   runs of punctuation, then kGpt2 within what is between, then digits by three.
enum class PreTokenizer { kGpt2, kSmollm, kLlamaBpe, kQwen2, kDefault };

// By the name in `tokenizer.ggml.pre`. UNIMPLEMENTED for a name that Baton does not know.
absl::StatusOr<PreTokenizer> PreTokenizerFromName(std::string_view name);

// The words of `text`, valid UTF-8, in order and without gaps. Linear in the length of the text.
std::vector<std::string_view> SplitWords(PreTokenizer rules, std::string_view text);

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
