#ifndef BATON_ENGINE_TOKENIZER_VOCABULARY_H_
#define BATON_ENGINE_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/model_file/model_file.h"
#include "engine/token.h"

namespace baton {

// What a token is, numbered as GGUF numbers them.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,  // split off before anything else, in any text
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte that no other token holds
};

// The tokens of a model file as it spells them, and the special ones among them. Holds copies; the file may
// be closed. Immutable; any number of threads may read it.
class Vocabulary {
 public:
  // INVALID_ARGUMENT for a missing or empty list, a text that comes twice or is too long, a kind that is
  // unknown, and lists that differ in length.
  static absl::StatusOr<Vocabulary> Read(const ModelFile& file);

  uint32_t size() const { return static_cast<uint32_t>(kinds_.size()); }
  std::string_view text(TokenId id) const {
    return {texts_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]};
  }
  TokenKind kind(TokenId id) const { return kinds_[id]; }
  // True for tokens that steer the model and that no ordinary text may spell.
  bool is_control(TokenId id) const {
    return kinds_[id] == TokenKind::kControl || kinds_[id] == TokenKind::kUnknown;
  }
  std::optional<TokenId> Find(std::string_view text) const;
  size_t longest_text_bytes() const { return longest_text_bytes_; }

  static constexpr size_t kMaxTokens = 1 << 22;
  static constexpr size_t kMaxTextBytes = 4096;
  static constexpr size_t kMaxAddedTokenBytes = 512;  // of control and user-defined tokens

 private:
  absl::Status AddTexts(const std::vector<std::string_view>& texts);

  std::vector<char> texts_;                             // one after the other
  std::vector<uint64_t> offsets_;                       // [size + 1] into texts_
  std::vector<TokenKind> kinds_;                        // [size]
  absl::flat_hash_map<std::string_view, TokenId> ids_;  // of texts that are not empty; keys point into texts_
  size_t longest_text_bytes_ = 0;
};

// The ids that a file gives for the ends of a text.
struct SpecialTokens {
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;
  std::vector<TokenId> end_of_generation;  // ascending
  bool add_bos = false;
  bool add_eos = false;
};

// `adds_bos_by_default` is for files that do not say. INVALID_ARGUMENT for an id outside of the vocabulary,
// and for a file that asks for a BOS or EOS that it does not name.
absl::StatusOr<SpecialTokens> ReadSpecialTokens(const ModelFile& file, const Vocabulary& vocabulary,
                                                bool adds_bos_by_default);

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_VOCABULARY_H_
