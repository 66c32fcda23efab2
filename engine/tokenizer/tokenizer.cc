#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "common/utf8.h"
#include "engine/tokenizer/added_token_matcher.h"
#include "engine/tokenizer/bpe_encoder.h"
#include "engine/tokenizer/sentence_piece_encoder.h"
#include "engine/tokenizer/text_encoder.h"
#include "engine/tokenizer/vocabulary.h"

namespace baton {
namespace {

// The bytes of every token, one after the other.
class TokenTable {
 public:
  TokenTable(const Vocabulary& vocabulary, const TextEncoder& encoder) {
    offsets_.reserve(vocabulary.size() + 1);
    offsets_.push_back(0);
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.is_control(id) || vocabulary.kind(id) == TokenKind::kUserDefined) {
        bytes_ += vocabulary.text(id);
      } else {
        encoder.AppendBytes(id, bytes_);
      }
      offsets_.push_back(bytes_.size());
    }
  }

  std::string_view operator[](TokenId id) const {
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

 private:
  std::string bytes_;
  std::vector<uint64_t> offsets_;  // [vocabulary + 1] into bytes_
};

// Runs as one text, with the stretches in which control tokens may be spelled.
struct JoinedText {
  struct Stretch {
    size_t begin = 0;
    size_t end = 0;
  };
  std::string text;
  std::vector<Stretch> control;  // ascending; stretches that touch are one
};

absl::StatusOr<JoinedText> Join(absl::Span<const TextRun> runs) {
  JoinedText joined;
  size_t total_bytes = 0;
  for (const TextRun& run : runs) total_bytes += run.text.size();
  if (total_bytes > Tokenizer::kMaxTextBytes) {
    return absl::InvalidArgumentError(
        StrCat("the text has ", total_bytes, " bytes, limit ", Tokenizer::kMaxTextBytes));
  }
  joined.text.reserve(total_bytes);
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string_view text = runs[i].text;
    for (size_t offset = 0; offset < text.size();) {
      const size_t length = CodePointLength(text.substr(offset));
      if (length == 0) {
        return absl::InvalidArgumentError(StrCat("run ", i, " of the text is not UTF-8 at byte ", offset));
      }
      offset += length;
    }
    if (runs[i].allow_control && !text.empty()) {
      const size_t begin = joined.text.size();
      if (!joined.control.empty() && joined.control.back().end == begin) {
        joined.control.back().end += text.size();
      } else {
        joined.control.push_back({begin, begin + text.size()});
      }
    }
    joined.text += text;
  }
  return joined;
}

class FileTokenizer : public Tokenizer {
 public:
  FileTokenizer(std::unique_ptr<const Vocabulary> vocabulary, SpecialTokens special,
                std::unique_ptr<const TextEncoder> encoder)
      : vocabulary_(std::move(vocabulary)),
        special_(std::move(special)),
        encoder_(std::move(encoder)),
        matcher_(*vocabulary_),
        table_(*vocabulary_, *encoder_) {}

  absl::StatusOr<std::vector<TokenId>> Encode(absl::Span<const TextRun> runs,
                                              bool add_special) const override;

  std::string_view TokenBytes(TokenId id) const override {
    BATON_CHECK(id < vocabulary_->size());
    return table_[id];
  }
  bool IsControl(TokenId id) const override {
    BATON_CHECK(id < vocabulary_->size());
    return vocabulary_->is_control(id);
  }
  uint32_t vocab_size() const override { return vocabulary_->size(); }
  std::optional<TokenId> bos() const override { return special_.bos; }
  absl::Span<const TokenId> end_of_generation() const override { return special_.end_of_generation; }
  std::optional<TokenId> FindToken(std::string_view text) const override { return vocabulary_->Find(text); }
  bool adds_space_prefix() const override { return encoder_->adds_space_prefix(); }

 private:
  absl::Status EncodeJoined(const JoinedText& joined, std::vector<TokenId>& ids) const;

  const std::unique_ptr<const Vocabulary> vocabulary_;
  const SpecialTokens special_;
  const std::unique_ptr<const TextEncoder> encoder_;
  const AddedTokenMatcher matcher_;
  const TokenTable table_;
};

absl::StatusOr<std::vector<TokenId>> FileTokenizer::Encode(absl::Span<const TextRun> runs,
                                                           bool add_special) const {
  ASSIGN_OR_RETURN(const JoinedText joined, Join(runs));
  std::vector<TokenId> ids;
  if (add_special && special_.add_bos) ids.push_back(*special_.bos);
  RETURN_IF_ERROR(EncodeJoined(joined, ids));
  if (add_special && special_.add_eos) ids.push_back(*special_.eos);
  return ids;
}

absl::Status FileTokenizer::EncodeJoined(const JoinedText& joined, std::vector<TokenId>& ids) const {
  const std::string_view text = joined.text;
  size_t plain_begin = 0;
  bool starts = true;
  auto control = joined.control.begin();
  const auto encode_plain_until = [&](size_t end) -> absl::Status {
    if (end == plain_begin) return absl::OkStatus();
    return encoder_->Encode(text.substr(plain_begin, end - plain_begin), starts, ids);
  };
  for (size_t offset = 0; offset < text.size();) {
    while (control != joined.control.end() && control->end <= offset) ++control;
    const bool allowed = control != joined.control.end() && control->begin <= offset;
    const auto match = matcher_.LongestAt(text, offset, allowed ? control->end : 0);
    if (!match.has_value()) {
      ++offset;
      continue;
    }
    RETURN_IF_ERROR(encode_plain_until(offset));
    ids.push_back(match->id);
    offset += match->bytes;
    plain_begin = offset;
    starts = true;
  }
  return encode_plain_until(text.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(const ModelFile& file) {
  const std::optional<std::string_view> model = file.GetString("tokenizer.ggml.model");
  if (!model.has_value()) return absl::InvalidArgumentError("tokenizer.ggml.model is missing");
  const bool sentence_piece = *model == "llama";
  if (!sentence_piece && *model != "gpt2") {
    return absl::UnimplementedError(
        StrCat("tokenizer.ggml.model is \"", *model, "\", supported are gpt2 and llama"));
  }
  ASSIGN_OR_RETURN(Vocabulary read, Vocabulary::Read(file));
  auto vocabulary = std::make_unique<const Vocabulary>(std::move(read));
  ASSIGN_OR_RETURN(SpecialTokens special, ReadSpecialTokens(file, *vocabulary, sentence_piece));
  std::unique_ptr<const TextEncoder> encoder;
  if (sentence_piece) {
    ASSIGN_OR_RETURN(encoder, SentencePieceEncoder::Create(file, vocabulary.get(), special.unknown));
  } else {
    ASSIGN_OR_RETURN(encoder, BpeEncoder::Create(file, vocabulary.get()));
  }
  return std::make_unique<FileTokenizer>(std::move(vocabulary), std::move(special), std::move(encoder));
}

}  // namespace baton
