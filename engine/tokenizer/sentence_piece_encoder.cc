#include "engine/tokenizer/sentence_piece_encoder.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/status_macros.h"
#include "common/str_cat.h"
#include "common/utf8.h"

namespace baton {
namespace {

constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

// "<0xXX>" to its value; nullopt for anything else.
std::optional<uint8_t> ParseByteToken(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  int value = 0;
  for (char digit : text.substr(3, 2)) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && !(digit >= 'A' && digit <= 'F')) return std::nullopt;
    value = value * 16 + (decimal ? digit - '0' : digit - 'A' + 10);
  }
  return static_cast<uint8_t>(value);
}

std::string MarkSpaces(std::string_view text, bool prefix) {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2);
  if (prefix) marked += kSpaceMark;
  for (char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked += c;
    }
  }
  return marked;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> SentencePieceEncoder::Create(
    const ModelFile& file, const Vocabulary* vocabulary, std::optional<TokenId> unknown) {
  const bool prefix = file.GetBool("tokenizer.ggml.add_space_prefix").value_or(true);
  std::unique_ptr<SentencePieceEncoder> encoder(new SentencePieceEncoder(vocabulary, unknown, prefix));
  RETURN_IF_ERROR(encoder->ReadScores(file));
  RETURN_IF_ERROR(encoder->ReadByteTokens());
  encoder->FindJoints();
  return encoder;
}

absl::Status SentencePieceEncoder::ReadScores(const ModelFile& file) {
  const std::optional<std::vector<float>> scores = file.GetFloats(kScoresKey);
  if (!scores.has_value() || scores->size() != vocabulary_->size()) {
    return absl::InvalidArgumentError(StrCat(kScoresKey, " has ", scores.has_value() ? scores->size() : 0,
                                             " numbers, the vocabulary has ", vocabulary_->size(),
                                             " tokens"));
  }
  for (size_t i = 0; i < scores->size(); ++i) {
    if (!std::isfinite((*scores)[i])) {
      return absl::InvalidArgumentError(
          StrCat(kScoresKey, "[", i, "] is ", (*scores)[i], ", must be finite"));
    }
  }
  std::vector<float> best_first = *scores;
  std::sort(best_first.begin(), best_first.end(), std::greater<>());
  best_first.erase(std::unique(best_first.begin(), best_first.end()), best_first.end());
  ranks_.reserve(scores->size());
  for (float score : *scores) {
    const auto place = std::lower_bound(best_first.begin(), best_first.end(), score, std::greater<>());
    ranks_.push_back(static_cast<uint32_t>(place - best_first.begin()));
  }
  return absl::OkStatus();
}

absl::Status SentencePieceEncoder::ReadByteTokens() {
  byte_tokens_.fill(kNoToken);
  for (TokenId id = 0; id < vocabulary_->size(); ++id) {
    if (vocabulary_->kind(id) != TokenKind::kByte) continue;
    const std::optional<uint8_t> byte = ParseByteToken(vocabulary_->text(id));
    if (!byte.has_value()) {
      return absl::InvalidArgumentError(
          StrCat("token ", id, " is a byte token, but its text is not \"<0xXX>\""));
    }
    byte_tokens_[*byte] = id;
  }
  const auto missing = std::find(byte_tokens_.begin(), byte_tokens_.end(), kNoToken);
  if (missing != byte_tokens_.end() && !unknown_.has_value()) {
    return absl::InvalidArgumentError(StrCat("the vocabulary has no token for byte ",
                                             missing - byte_tokens_.begin(), " and no unknown token"));
  }
  return absl::OkStatus();
}

std::optional<TokenId> SentencePieceEncoder::FindMergeable(std::string_view text) const {
  if (text.size() > vocabulary_->longest_text_bytes()) return std::nullopt;
  const std::optional<TokenId> id = vocabulary_->Find(text);
  return id.has_value() && IsMergeable(*id) ? id : std::nullopt;
}

void SentencePieceEncoder::FindJoints() {
  for (TokenId id = 0; id < vocabulary_->size(); ++id) {
    if (!IsMergeable(id)) continue;
    const std::string_view text = vocabulary_->text(id);
    for (size_t mark = text.find(kSpaceMark, 1); mark != std::string_view::npos;
         mark = text.find(kSpaceMark, mark + 1)) {
      if (!text.substr(0, mark).ends_with(kSpaceMark))
        joins_mark_[static_cast<uint8_t>(text[mark - 1])] = true;
    }
  }
}

size_t SentencePieceEncoder::WordEnd(std::string_view text) const {
  for (size_t mark = text.find(kSpaceMark, 1); mark != std::string_view::npos;
       mark = text.find(kSpaceMark, mark + 1)) {
    if (text.substr(0, mark).ends_with(kSpaceMark)) continue;
    if (!joins_mark_[static_cast<uint8_t>(text[mark - 1])]) return mark;
  }
  return text.size();
}

absl::Status SentencePieceEncoder::Encode(std::string_view text, bool starts,
                                          std::vector<TokenId>& ids) const {
  const std::string marked = MarkSpaces(text, starts && adds_space_prefix_);
  Scratch scratch;
  for (std::string_view rest = marked; !rest.empty();) {
    const size_t end = WordEnd(rest);
    EncodeWord(rest.substr(0, end), scratch, ids);
    rest.remove_prefix(end);
  }
  return absl::OkStatus();
}

void SentencePieceEncoder::EncodeWord(std::string_view word, Scratch& scratch,
                                      std::vector<TokenId>& ids) const {
  std::vector<Piece>& pieces = scratch.pieces;
  pieces.clear();
  for (size_t begin = 0; begin < word.size();) {
    const size_t length = CodePointLength(word.substr(begin));
    const std::optional<TokenId> id = FindMergeable(word.substr(begin, length));
    pieces.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(length), id.value_or(kNoToken)});
    begin += length;
  }
  scratch.merger.Merge(pieces, [&](const Piece& left, const Piece& right) -> std::optional<PairMerge> {
    const std::optional<TokenId> id = FindMergeable(word.substr(left.begin, left.length + right.length));
    if (!id.has_value()) return std::nullopt;
    return PairMerge{ranks_[*id], *id};
  });
  for (const Piece& piece : pieces) {
    if (piece.id != kNoToken) {
      ids.push_back(piece.id);
    } else {
      AppendAsBytes(word.substr(piece.begin, piece.length), ids);
    }
  }
}

void SentencePieceEncoder::AppendAsBytes(std::string_view text, std::vector<TokenId>& ids) const {
  const auto token_of = [this](char c) { return byte_tokens_[static_cast<uint8_t>(c)]; };
  if (std::any_of(text.begin(), text.end(), [&](char c) { return token_of(c) == kNoToken; })) {
    ids.push_back(*unknown_);
    return;
  }
  for (char c : text) ids.push_back(token_of(c));
}

void SentencePieceEncoder::AppendBytes(TokenId id, std::string& bytes) const {
  std::string_view text = vocabulary_->text(id);
  if (vocabulary_->kind(id) == TokenKind::kByte) {
    bytes += static_cast<char>(*ParseByteToken(text));
    return;
  }
  for (size_t mark = text.find(kSpaceMark); mark != std::string_view::npos; mark = text.find(kSpaceMark)) {
    bytes += text.substr(0, mark);
    bytes += ' ';
    text.remove_prefix(mark + kSpaceMark.size());
  }
  bytes += text;
}

}  // namespace baton
