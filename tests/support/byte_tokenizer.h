#ifndef BATON_TESTS_SUPPORT_BYTE_TOKENIZER_H_
#define BATON_TESTS_SUPPORT_BYTE_TOKENIZER_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton {

// One token per byte, and an end-of-answer token.
class ByteTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kEnd = 256;
  static constexpr uint32_t kVocabulary = 257;

  ByteTokenizer() {
    for (uint32_t byte = 0; byte < 256; ++byte) bytes_[byte] = static_cast<char>(byte);
  }

  absl::StatusOr<std::vector<TokenId>> Encode(absl::Span<const TextRun> runs,
                                              bool add_special) const override {
    std::vector<TokenId> tokens;
    for (const TextRun& run : runs) {
      for (char c : run.text) tokens.push_back(static_cast<unsigned char>(c));
    }
    return tokens;
  }
  std::string_view TokenBytes(TokenId id) const override {
    return id == kEnd ? std::string_view("<end>") : std::string_view(&bytes_[id], 1);
  }
  bool IsControl(TokenId id) const override { return id == kEnd; }
  uint32_t vocab_size() const override { return kVocabulary; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  absl::Span<const TokenId> end_of_generation() const override { return absl::MakeConstSpan(end_); }
  std::optional<TokenId> FindToken(std::string_view text) const override {
    return text == "<end>" ? std::optional<TokenId>(kEnd) : std::nullopt;
  }
  bool adds_space_prefix() const override { return false; }

 private:
  std::array<char, 256> bytes_;
  std::array<TokenId, 1> end_ = {kEnd};
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_BYTE_TOKENIZER_H_
