#include "engine/tokenizer/tiny_tokenizer.h"

#include "absl/strings/str_format.h"
#include "engine/model_file/model_file.h"
#include "engine/tokenizer/byte_level.h"

namespace baton {

TokenId TinyTokenizer::Add(const std::string& text, TokenKind kind, float score) {
  tokens.push_back(text);
  kinds.push_back(static_cast<int32_t>(kind));
  scores.push_back(score);
  return static_cast<TokenId>(tokens.size() - 1);
}

std::vector<std::byte> TinyTokenizer::File(const std::function<void(GgufWriter&)>& more) const {
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", model);
  if (!pre.empty()) writer.AddString("tokenizer.ggml.pre", pre);
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddInts("tokenizer.ggml.token_type", kinds);
  if (model == "llama") writer.AddFloats("tokenizer.ggml.scores", scores);
  if (model == "gpt2") writer.AddStrings("tokenizer.ggml.merges", merges);
  if (more) more(writer);
  return writer.Serialize();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TinyTokenizer::Create(
    const std::function<void(GgufWriter&)>& more) const {
  const std::vector<std::byte> bytes = File(more);
  const auto file = ModelFile::Parse(bytes);
  if (!file.ok()) return file.status();
  return Tokenizer::Create(**file);
}

TinyTokenizer TinyByteLevel(const std::string& pre) {
  TinyTokenizer tokenizer;
  tokenizer.model = "gpt2";
  tokenizer.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    AppendByteLevel(static_cast<uint8_t>(byte), text);
    tokenizer.Add(text);
  }
  tokenizer.Add("<|im_start|>", TokenKind::kControl);
  tokenizer.Add("<|im_end|>", TokenKind::kControl);
  tokenizer.Add("[user]", TokenKind::kUserDefined);
  return tokenizer;
}

TinyTokenizer TinySentencePiece() {
  TinyTokenizer tokenizer;
  tokenizer.model = "llama";
  tokenizer.Add("<unk>", TokenKind::kUnknown);
  tokenizer.Add("<s>", TokenKind::kControl);
  tokenizer.Add("</s>", TokenKind::kControl);
  for (int byte = 0; byte < 256; ++byte) tokenizer.Add(absl::StrFormat("<0x%02X>", byte), TokenKind::kByte);
  return tokenizer;
}

}  // namespace baton
