#ifndef BATON_ENGINE_TOKENIZER_TOKENIZER_H_
#define BATON_ENGINE_TOKENIZER_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/model_file/model_file.h"
#include "engine/token.h"

namespace baton {

// A run of text and whether it may spell control tokens. What a template wrote may; what a user wrote may not
// unless the call asks for it. Adjacent runs tokenize as one text: a boundary between them never splits a
// word.
struct TextRun {
  std::string text;
  bool allow_control = false;
};

// Text to token ids and back, as the model file's own tokenizer does it: byte-level BPE (`gpt2` models with
// their pre-tokenizer) or SentencePiece scores (`llama` models). Immutable; any number of threads may call
// it.
class Tokenizer {
 public:
  // UNIMPLEMENTED for a tokenizer model or pre-tokenizer that Baton does not know, INVALID_ARGUMENT for a bad
  // one.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(const ModelFile& file);
  virtual ~Tokenizer() = default;

  // INVALID_ARGUMENT when a run is not UTF-8 (the text names run and byte offset) or when the runs are longer
  // than kMaxTextBytes together. `add_special` adds BOS/EOS as the file asks (a rendered chat template
  // usually writes its own BOS: pass false). Linear in the length of the text, up to a logarithm, for any
  // text.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(absl::Span<const TextRun> runs,
                                                      bool add_special) const = 0;

  // The bytes that a token stands for; they need not be whole UTF-8. Control tokens give their name
  // ("<|im_end|>"). `id` < vocab_size().
  virtual std::string_view TokenBytes(TokenId id) const = 0;
  virtual bool IsControl(TokenId id) const = 0;

  virtual uint32_t vocab_size() const = 0;
  virtual std::optional<TokenId> bos() const = 0;
  // Every token that ends an answer, ascending: the file's eos, eot and eom ids, and the control tokens that
  // end a turn by their well-known names ("<|im_end|>", "<end_of_turn>" ...), which some files do not list.
  virtual absl::Span<const TokenId> end_of_generation() const = 0;
  // The exact token of this text (to find "<|im_start|>"), if there is one.
  virtual std::optional<TokenId> FindToken(std::string_view text) const = 0;
  // SentencePiece adds a space before the first word; decoding takes it off again.
  virtual bool adds_space_prefix() const = 0;

  static constexpr size_t kMaxTextBytes = 256 << 20;
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_TOKENIZER_H_
