#ifndef BATON_ENGINE_TOKENIZER_BPE_ENCODER_H_
#define BATON_ENGINE_TOKENIZER_BPE_ENCODER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/model_file/model_file.h"
#include "engine/tokenizer/pair_merger.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/text_encoder.h"
#include "engine/tokenizer/vocabulary.h"

namespace baton {

// Byte-level BPE (the `gpt2` tokenizer model): the words of a text, byte by byte, merge by the rank of their
// pairs. A byte that the vocabulary has no token for is left out, as the models' own tokenizers do (some lack
// a few of the control characters).
class BpeEncoder : public TextEncoder {
 public:
  // UNIMPLEMENTED for an unknown pre-tokenizer; INVALID_ARGUMENT when merges are missing or when one is not
  // two tokens of the vocabulary whose joined text is a third.
  static absl::StatusOr<std::unique_ptr<BpeEncoder>> Create(const ModelFile& file,
                                                            const Vocabulary* vocabulary);

  absl::Status Encode(std::string_view text, bool starts, std::vector<TokenId>& ids) const override;
  void AppendBytes(TokenId id, std::string& bytes) const override;
  bool adds_space_prefix() const override { return false; }

 private:
  BpeEncoder(const Vocabulary* vocabulary, PreTokenizer rules) : vocabulary_(vocabulary), rules_(rules) {}

  // What EncodeWord works in, kept from word to word.
  struct Scratch {
    std::vector<Piece> pieces;
    PairMerger merger;
  };

  void ReadByteTokens();
  absl::Status ReadMerges(const ModelFile& file);
  absl::Status AddMerge(std::string_view merge, uint32_t rank);
  void EncodeWord(std::string_view word, Scratch& scratch, std::vector<TokenId>& ids) const;
  // Appends the one token that spells `word`; false when there is none.
  bool AppendWholeWord(std::string_view word, std::vector<TokenId>& ids) const;

  const Vocabulary* const vocabulary_;
  const PreTokenizer rules_;
  std::array<TokenId, 256> byte_tokens_ = {};        // kNoToken where the vocabulary has none
  absl::flat_hash_map<uint64_t, PairMerge> merges_;  // by left << 32 | right
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_BPE_ENCODER_H_
