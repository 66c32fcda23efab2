#include "engine/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kKindsKey = "tokenizer.ggml.token_type";

// Control tokens that end a turn in the models that have them, whether or not the file lists them.
constexpr std::array<std::string_view, 9> kEndOfTurnNames = {
    "<|eot_id|>",    "<|eom_id|>",      "<|im_end|>",
    "<|end|>",       "<|end_of_text|>", "<|endoftext|>",
    "<end_of_turn>", "<|end_of_turn|>", "<｜end▁of▁sentence｜>",
};

absl::StatusOr<std::vector<TokenKind>> ReadKinds(const ModelFile& file, size_t token_count) {
  const std::optional<std::vector<int64_t>> numbers = file.GetInts(kKindsKey);
  if (!numbers.has_value()) return std::vector<TokenKind>(token_count, TokenKind::kNormal);
  if (numbers->size() != token_count) {
    return absl::InvalidArgumentError(
        StrCat(kKindsKey, " has ", numbers->size(), " elements, ", kTokensKey, " has ", token_count));
  }
  std::vector<TokenKind> kinds;
  kinds.reserve(token_count);
  for (int64_t number : *numbers) {
    if (number < static_cast<int>(TokenKind::kNormal) || number > static_cast<int>(TokenKind::kByte)) {
      return absl::InvalidArgumentError(
          StrCat(kKindsKey, "[", kinds.size(), "] is ", number, ", must be 1 to 6"));
    }
    kinds.push_back(static_cast<TokenKind>(number));
  }
  return kinds;
}

absl::StatusOr<std::optional<TokenId>> ReadId(const ModelFile& file, std::string_view name,
                                              uint32_t vocabulary_size) {
  const std::string key = StrCat("tokenizer.ggml.", name);
  const std::optional<uint64_t> id = file.GetUint(key);
  if (!id.has_value()) return std::optional<TokenId>();
  if (*id >= vocabulary_size) {
    return absl::InvalidArgumentError(
        StrCat(key, " is ", *id, ", the vocabulary has ", vocabulary_size, " tokens"));
  }
  return std::optional<TokenId>(static_cast<TokenId>(*id));
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Read(const ModelFile& file) {
  const std::optional<std::vector<std::string_view>> texts = file.GetStrings(kTokensKey);
  if (!texts.has_value() || texts->empty()) {
    return absl::InvalidArgumentError(StrCat(kTokensKey, " is missing, empty or not a list of strings"));
  }
  if (texts->size() > kMaxTokens) {
    return absl::InvalidArgumentError(
        StrCat(kTokensKey, " has ", texts->size(), " tokens, limit ", kMaxTokens));
  }
  Vocabulary vocabulary;
  ASSIGN_OR_RETURN(vocabulary.kinds_, ReadKinds(file, texts->size()));
  RETURN_IF_ERROR(vocabulary.AddTexts(*texts));
  return vocabulary;
}

absl::Status Vocabulary::AddTexts(const std::vector<std::string_view>& texts) {
  size_t total_bytes = 0;
  for (std::string_view text : texts) total_bytes += text.size();
  texts_.reserve(total_bytes);  // ids_ points into it: it must never move
  offsets_.reserve(texts.size() + 1);
  offsets_.push_back(0);
  ids_.reserve(texts.size());
  for (TokenId id = 0; id < texts.size(); ++id) {
    const bool added = is_control(id) || kinds_[id] == TokenKind::kUserDefined;
    const size_t limit = added ? kMaxAddedTokenBytes : kMaxTextBytes;
    if (texts[id].size() > limit) {
      return absl::InvalidArgumentError(
          StrCat(kTokensKey, "[", id, "] has ", texts[id].size(), " bytes, limit ", limit));
    }
    texts_.insert(texts_.end(), texts[id].begin(), texts[id].end());
    offsets_.push_back(texts_.size());
    longest_text_bytes_ = std::max(longest_text_bytes_, texts[id].size());
    if (texts[id].empty()) continue;
    const auto [place, inserted] = ids_.emplace(text(id), id);
    if (!inserted) {
      return absl::InvalidArgumentError(
          StrCat(kTokensKey, "[", id, "] is the same text as [", place->second, "]"));
    }
  }
  return absl::OkStatus();
}

std::optional<TokenId> Vocabulary::Find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<SpecialTokens> ReadSpecialTokens(const ModelFile& file, const Vocabulary& vocabulary,
                                                bool adds_bos_by_default) {
  SpecialTokens special;
  ASSIGN_OR_RETURN(special.bos, ReadId(file, "bos_token_id", vocabulary.size()));
  ASSIGN_OR_RETURN(special.eos, ReadId(file, "eos_token_id", vocabulary.size()));
  ASSIGN_OR_RETURN(special.unknown, ReadId(file, "unknown_token_id", vocabulary.size()));
  ASSIGN_OR_RETURN(const std::optional<TokenId> eot, ReadId(file, "eot_token_id", vocabulary.size()));
  ASSIGN_OR_RETURN(const std::optional<TokenId> eom, ReadId(file, "eom_token_id", vocabulary.size()));

  const std::optional<bool> add_bos = file.GetBool("tokenizer.ggml.add_bos_token");
  special.add_bos = add_bos.value_or(adds_bos_by_default && special.bos.has_value());
  special.add_eos = file.GetBool("tokenizer.ggml.add_eos_token").value_or(false);
  if ((special.add_bos && !special.bos.has_value()) || (special.add_eos && !special.eos.has_value())) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.add_bos_token or add_eos_token is true, but the file names no such token");
  }

  std::vector<TokenId>& ends = special.end_of_generation;
  for (const std::optional<TokenId>& id : {special.eos, eot, eom}) {
    if (id.has_value()) ends.push_back(*id);
  }
  for (std::string_view name : kEndOfTurnNames) {
    const std::optional<TokenId> id = vocabulary.Find(name);
    if (id.has_value() && vocabulary.is_control(*id)) ends.push_back(*id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return special;
}

}  // namespace baton
