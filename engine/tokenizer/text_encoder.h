#ifndef BATON_ENGINE_TOKENIZER_TEXT_ENCODER_H_
#define BATON_ENGINE_TOKENIZER_TEXT_ENCODER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/token.h"

namespace baton {

// One family of tokenizers: plain text to tokens, and a token's spelling in the file to the bytes that it
// stands for. Immutable; any number of threads may call it. The vocabulary that it was made from must outlive
// it.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Appends the tokens of `text`: valid UTF-8, not empty, no added tokens in it. `starts` is true for the
  // first stretch of a text and for one that follows an added token.
  virtual absl::Status Encode(std::string_view text, bool starts, std::vector<TokenId>& ids) const = 0;

  // Appends what an ordinary token (no added one) stands for.
  virtual void AppendBytes(TokenId id, std::string& bytes) const = 0;

  virtual bool adds_space_prefix() const = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_TEXT_ENCODER_H_
