#ifndef BATON_ENGINE_TOKENIZER_SENTENCE_PIECE_ENCODER_H_
#define BATON_ENGINE_TOKENIZER_SENTENCE_PIECE_ENCODER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model_file/model_file.h"
#include "engine/tokenizer/pair_merger.h"
#include "engine/tokenizer/text_encoder.h"
#include "engine/tokenizer/vocabulary.h"

namespace baton {

// SentencePiece by scores (the `llama` tokenizer model): spaces become U+2581, then the two neighbours whose
// joined text is the best-scoring token merge, until none are left. What is no token then is spelled in byte
// tokens.
class SentencePieceEncoder : public TextEncoder {
 public:
  // INVALID_ARGUMENT when scores are missing or not finite, when a byte token is not "<0xXX>", and when bytes
  // that have no token cannot become the unknown token either.
  static absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> Create(const ModelFile& file,
                                                                      const Vocabulary* vocabulary,
                                                                      std::optional<TokenId> unknown);

  absl::Status Encode(std::string_view text, bool starts, std::vector<TokenId>& ids) const override;
  void AppendBytes(TokenId id, std::string& bytes) const override;
  bool adds_space_prefix() const override { return adds_space_prefix_; }

 private:
  SentencePieceEncoder(const Vocabulary* vocabulary, std::optional<TokenId> unknown, bool adds_space_prefix)
      : vocabulary_(vocabulary), unknown_(unknown), adds_space_prefix_(adds_space_prefix) {}

  // What EncodeWord works in, kept from word to word.
  struct Scratch {
    std::vector<Piece> pieces;
    PairMerger merger;
  };

  absl::Status ReadScores(const ModelFile& file);
  absl::Status ReadByteTokens();
  void FindJoints();
  // Where the word that begins `text` ends: before a space mark that no token has behind what precedes it. No
  // merge crosses the ends of words, so that each merges alone, as it would within the whole.
  size_t WordEnd(std::string_view text) const;
  void EncodeWord(std::string_view word, Scratch& scratch, std::vector<TokenId>& ids) const;
  bool IsMergeable(TokenId id) const {
    return !vocabulary_->is_control(id) && vocabulary_->kind(id) != TokenKind::kByte;
  }
  // The token of `text` if merging may produce it.
  std::optional<TokenId> FindMergeable(std::string_view text) const;
  void AppendAsBytes(std::string_view text, std::vector<TokenId>& ids) const;

  const Vocabulary* const vocabulary_;
  const std::optional<TokenId> unknown_;
  const bool adds_space_prefix_;
  std::vector<uint32_t> ranks_;            // [vocabulary] 0 = the best score; equal scores have equal ranks
  std::array<bool, 256> joins_mark_ = {};  // by byte: some token has it right before a space mark
  std::array<TokenId, 256> byte_tokens_;   // kNoToken where the vocabulary has none
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_SENTENCE_PIECE_ENCODER_H_
