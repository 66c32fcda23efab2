#ifndef BATON_ENGINE_TOKENIZER_TINY_TOKENIZER_H_
#define BATON_ENGINE_TOKENIZER_TINY_TOKENIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model_file/gguf_writer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace baton {

// A tokenizer of a few tokens, for tests: filled in, then written as a model file and read back.
struct TinyTokenizer {
  std::string model;  // tokenizer.ggml.model
  std::string pre;    // tokenizer.ggml.pre; left out when empty
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  std::vector<float> scores;        // written for "llama"
  std::vector<std::string> merges;  // written for "gpt2"

  // Returns the token's id.
  TokenId Add(const std::string& text, TokenKind kind = TokenKind::kNormal, float score = 0);

  // `more` adds further metadata.
  std::vector<std::byte> File(const std::function<void(GgufWriter&)>& more = nullptr) const;
  absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      const std::function<void(GgufWriter&)>& more = nullptr) const;
};

// The 256 bytes (ids 0 to 255), "<|im_start|>" and "<|im_end|>" (control), "[user]" (user-defined), no
// merges.
TinyTokenizer TinyByteLevel(const std::string& pre = "gpt-2");

// "<unk>" (0), "<s>" and "</s>" (control), the byte tokens (ids 3 to 258), nothing else.
TinyTokenizer TinySentencePiece();

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_TINY_TOKENIZER_H_
