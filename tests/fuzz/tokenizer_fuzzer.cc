// Two sorts of input. A GGUF file: whatever tokenizer it makes must tokenize. Anything else: a text for small
// tokenizers of every kind, cut into runs at each 0xFE byte, the runs after an odd number of cuts allowed to
// spell control tokens.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/check.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tiny_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton {
namespace {

std::string Join(const std::vector<TextRun>& runs) {
  std::string text;
  for (const TextRun& run : runs) text += run.text;
  return text;
}

std::vector<TokenId> Check(const Tokenizer& tokenizer, const std::vector<TextRun>& runs, bool any_control) {
  const auto ids = tokenizer.Encode(runs, /*add_special=*/false);
  if (!ids.ok()) {
    BATON_CHECK(ids.status().code() == absl::StatusCode::kInvalidArgument);
    return {};
  }
  for (TokenId id : *ids) {
    BATON_CHECK(id < tokenizer.vocab_size());
    BATON_CHECK(any_control || !tokenizer.IsControl(id) || tokenizer.TokenBytes(id) == "<unk>");
    tokenizer.TokenBytes(id);
  }
  return *ids;
}

std::vector<std::unique_ptr<Tokenizer>> MakeTinyTokenizers() {
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "default"}) {
    TinyTokenizer tiny = TinyByteLevel(pre);
    for (const char* merge :
         {"h e", "l l", "he ll", "\u0120 a", "a a", "aa aa", "\u010a \u010a", "\u00c3 \u00a9"}) {
      std::string joined = merge;
      std::erase(joined, ' ');
      tiny.Add(joined);
      tiny.merges.push_back(merge);
    }
    tokenizers.push_back(*tiny.Create());
  }
  TinyTokenizer tiny = TinySentencePiece();
  float score = 0;
  for (const char* text :
       {"a", "aa", "aaaa", "\u2581", "\u2581a", "a\u2581", "he", "hell", "\u00e9", "<", "<s"}) {
    tiny.Add(text, TokenKind::kNormal, score -= 0.5f);
  }
  tiny.Add("\n\n", TokenKind::kUserDefined);
  tokenizers.push_back(
      *tiny.Create([](GgufWriter& writer) { writer.AddBool("tokenizer.ggml.add_space_prefix", false); }));
  return tokenizers;
}

void FuzzText(std::string_view bytes) {
  static const auto* const tokenizers = new std::vector<std::unique_ptr<Tokenizer>>(MakeTinyTokenizers());
  std::vector<TextRun> runs = {{"", false}};
  bool any_control = false;
  for (char c : bytes) {
    if (c == '\xfe') {
      runs.push_back({"", !runs.back().allow_control});
      any_control = true;
    } else {
      runs.back().text += c;
    }
  }
  const std::string text = Join(runs);
  for (const auto& tokenizer : *tokenizers) {
    const std::vector<TokenId> ids = Check(*tokenizer, runs, any_control);
    if (ids.empty()) continue;
    // Every byte has a token, so the tokens spell the text (U+2581 as the space that it stands for).
    Detokenizer detokenizer(tokenizer.get(), /*skip_special_tokens=*/false);
    std::string back;
    for (TokenId id : ids) back += detokenizer.Push(id);
    back += detokenizer.Finish();
    BATON_CHECK(back == text || text.find("\u2581") != std::string::npos);
  }
}

void FuzzFile(std::vector<std::byte> bytes) {
  const auto file = ModelFile::Parse(bytes);
  if (!file.ok()) return;
  const auto tokenizer = Tokenizer::Create(**file);
  if (!tokenizer.ok()) return;
  std::fill(bytes.begin(), bytes.end(), std::byte{0});  // the tokenizer keeps nothing of the file
  const std::string text =
      " Hello, it's 12 o'clock\n\n\u00e9\u4f60\u597d\U0001f600 aaaa <|im_start|>[user]\u2581</s>";
  Check(**tokenizer, {{text, false}}, /*any_control=*/true);
  Check(**tokenizer, {{text, true}, {text, false}}, /*any_control=*/true);
  for (TokenId id : (*tokenizer)->end_of_generation()) BATON_CHECK(id < (*tokenizer)->vocab_size());
  Detokenizer detokenizer(tokenizer->get(), /*skip_special_tokens=*/true);
  for (TokenId id = 0; id < (*tokenizer)->vocab_size(); ++id) detokenizer.Push(id);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.starts_with("GGUF")) {
    baton::FuzzText(text);
    return 0;
  }
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), data, size);
  baton::FuzzFile(std::move(bytes));
  return 0;
}
