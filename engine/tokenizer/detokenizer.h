#ifndef BATON_ENGINE_TOKENIZER_DETOKENIZER_H_
#define BATON_ENGINE_TOKENIZER_DETOKENIZER_H_

#include <string>

#include "engine/tokenizer/tokenizer.h"

namespace baton {

// Turns one answer's tokens into text, token by token, holding back bytes that do not yet form whole UTF-8
// code points. Owned by one request, used by one thread at a time; the tokenizer must outlive it.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer* tokenizer, bool skip_special_tokens);

  // The text that `token` completes: whole code points, possibly none. Bytes that can no longer become UTF-8
  // come out as one U+FFFD per maximal bad sequence, as soon as that is known.
  std::string Push(TokenId token);

  // What was held back, as U+FFFD once if there was anything. Push must not be called afterwards.
  std::string Finish();

 private:
  const Tokenizer* const tokenizer_;
  const bool skip_special_tokens_;
  bool at_start_ = true;
  std::string pending_;  // the start of a code point, at most 3 bytes
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_DETOKENIZER_H_
