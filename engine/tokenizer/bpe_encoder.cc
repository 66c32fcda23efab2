#include "engine/tokenizer/bpe_encoder.h"

#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/nfc.h"

namespace baton {
namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

uint64_t PairKey(TokenId left, TokenId right) { return uint64_t{left} << 32 | right; }

}  // namespace

absl::StatusOr<std::unique_ptr<BpeEncoder>> BpeEncoder::Create(const ModelFile& file,
                                                               const Vocabulary* vocabulary) {
  ASSIGN_OR_RETURN(const PreTokenizer rules,
                   PreTokenizerFromName(file.GetString("tokenizer.ggml.pre").value_or("default")));
  std::unique_ptr<BpeEncoder> encoder(new BpeEncoder(vocabulary, rules));
  encoder->ReadByteTokens();
  RETURN_IF_ERROR(encoder->ReadMerges(file));
  return encoder;
}

void BpeEncoder::ReadByteTokens() {
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    AppendByteLevel(static_cast<uint8_t>(byte), text);
    const std::optional<TokenId> id = vocabulary_->Find(text);
    const bool ordinary = id.has_value() && !vocabulary_->is_control(*id);
    byte_tokens_[byte] = ordinary ? *id : kNoToken;
  }
}

absl::Status BpeEncoder::ReadMerges(const ModelFile& file) {
  const std::optional<std::vector<std::string_view>> merges = file.GetStrings(kMergesKey);
  if (!merges.has_value()) {
    return absl::InvalidArgumentError(StrCat(kMergesKey, " is missing or not a list of strings"));
  }
  merges_.reserve(merges->size());
  for (size_t rank = 0; rank < merges->size(); ++rank) {
    RETURN_IF_ERROR(AddMerge((*merges)[rank], static_cast<uint32_t>(rank)));
  }
  return absl::OkStatus();
}

absl::Status BpeEncoder::AddMerge(std::string_view merge, uint32_t rank) {
  const size_t space = merge.find(' ', 1);  // a token is never empty
  if (space == std::string_view::npos) {
    return absl::InvalidArgumentError(
        StrCat(kMergesKey, "[", rank, "] is not two tokens with a space between"));
  }
  const std::string_view left_text = merge.substr(0, space);
  const std::string_view right_text = merge.substr(space + 1);
  const std::optional<TokenId> left = vocabulary_->Find(left_text);
  const std::optional<TokenId> right = vocabulary_->Find(right_text);
  const std::optional<TokenId> joined = vocabulary_->Find(StrCat(left_text, right_text));
  if (!left.has_value() || !right.has_value() || !joined.has_value()) {
    return absl::InvalidArgumentError(
        StrCat(kMergesKey, "[", rank, "] names or makes a token that is not in the vocabulary"));
  }
  if (vocabulary_->is_control(*joined)) {
    return absl::InvalidArgumentError(StrCat(kMergesKey, "[", rank, "] makes the control token ", *joined));
  }
  merges_.emplace(PairKey(*left, *right), PairMerge{rank, *joined});
  return absl::OkStatus();
}

absl::Status BpeEncoder::Encode(std::string_view text, bool starts, std::vector<TokenId>& ids) const {
  std::string normalized;
  if (rules_ == PreTokenizer::kQwen2) {
    ASSIGN_OR_RETURN(normalized, NormalizeNfc(text));
    text = normalized;
  }
  Scratch scratch;
  for (std::string_view word : SplitWords(rules_, text)) EncodeWord(word, scratch, ids);
  return absl::OkStatus();
}

void BpeEncoder::EncodeWord(std::string_view word, Scratch& scratch, std::vector<TokenId>& ids) const {
  // Llama 3 takes a word that is a token as it is, even where its merges would not lead there.
  if (rules_ == PreTokenizer::kLlamaBpe && AppendWholeWord(word, ids)) return;
  std::vector<Piece>& pieces = scratch.pieces;
  pieces.clear();
  for (char c : word) {
    const TokenId id = byte_tokens_[static_cast<uint8_t>(c)];
    if (id != kNoToken) pieces.push_back({static_cast<uint32_t>(pieces.size()), 1, id});
  }
  scratch.merger.Merge(pieces, [this](const Piece& left, const Piece& right) -> std::optional<PairMerge> {
    const auto found = merges_.find(PairKey(left.id, right.id));
    if (found == merges_.end()) return std::nullopt;
    return found->second;
  });
  for (const Piece& piece : pieces) ids.push_back(piece.id);
}

bool BpeEncoder::AppendWholeWord(std::string_view word, std::vector<TokenId>& ids) const {
  if (word.size() > vocabulary_->longest_text_bytes()) return false;
  std::string text;
  for (char c : word) AppendByteLevel(static_cast<uint8_t>(c), text);
  const std::optional<TokenId> id = vocabulary_->Find(text);
  if (!id.has_value() || vocabulary_->is_control(*id)) return false;
  ids.push_back(*id);
  return true;
}

void BpeEncoder::AppendBytes(TokenId id, std::string& bytes) const {
  AppendFromByteLevel(vocabulary_->text(id), bytes);
}

}  // namespace baton
