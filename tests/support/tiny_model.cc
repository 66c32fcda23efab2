#include "tests/support/tiny_model.h"

#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "common/str_cat.h"
#include "engine/model_file/gguf_writer.h"
#include "tests/support/random_tensor.h"

namespace baton {
namespace {

constexpr int32_t kNormalToken = 1;
constexpr int32_t kUnknownToken = 2;
constexpr int32_t kControlToken = 3;
constexpr int32_t kByteToken = 6;

struct Shape {
  std::string_view architecture;
  uint32_t layers, hidden, heads, kv_heads, head_dim, feed_forward;
};

constexpr Shape kTinyLlama = {"llama", 4, 64, 4, 2, 16, 256};
constexpr Shape kTinyGemma3 = {"gemma3", 7, 96, 3, 1, 32, 160};

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

void AppendUtf8(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else {
    BATON_CHECK(code_point < 0x800);
    out.push_back(static_cast<char>(0xc0 | code_point >> 6));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
  }
}

// The visible character that stands for each byte in byte-level BPE: itself where it is printable in Latin-1,
// else the next free one from U+0100.
std::vector<std::string> ByteCharacters() {
  std::vector<std::string> characters(256);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    AppendUtf8(printable ? byte : next++, characters[byte]);
  }
  return characters;
}

uint32_t AddByteLevelTokenizer(GgufWriter& writer) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), kControlToken);
  for (std::string& character : ByteCharacters()) tokens.push_back(std::move(character));
  const std::string space = "\u0120";
  std::vector<std::string> merges = {
      "h e",          "l l",        "o r",        "i n",          "e r",  "o n",
      "a n",          space + " t", space + " a", "an d",         "in g", space + " w",
      space + "t he", "ll o",       "he llo",     space + "w or", "l d",  space + "wor ld",
      "o u",          "r e"};
  for (const std::string& merge : merges) {
    const size_t gap = merge.find(' ');
    tokens.push_back(merge.substr(0, gap) + merge.substr(gap + 1));
  }
  types.resize(tokens.size(), kNormalToken);
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "smollm");
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddInts("tokenizer.ggml.token_type", types);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  writer.AddUint("tokenizer.ggml.bos_token_id", 1);
  writer.AddUint("tokenizer.ggml.eos_token_id", 2);
  writer.AddUint("tokenizer.ggml.unknown_token_id", 0);
  writer.AddBool("tokenizer.ggml.add_bos_token", false);
  writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  writer.AddString("tokenizer.chat_template", kChatMl);
  return static_cast<uint32_t>(tokens.size());
}

uint32_t AddSentencePieceTokenizer(GgufWriter& writer) {
  std::vector<std::string> tokens = {"<pad>", "<eos>", "<bos>", "<unk>"};
  std::vector<int32_t> types = {kControlToken, kControlToken, kControlToken, kUnknownToken};
  std::vector<float> scores(tokens.size(), -1000.0f);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(StrCat("<0x", kHex.substr(byte / 16, 1), kHex.substr(byte % 16, 1), ">"));
    types.push_back(kByteToken);
    scores.push_back(-1000.0f);
  }
  // Longer pieces score better, so that they are merged up to.
  const std::string space = "\u2581";
  std::vector<std::string> pieces = {space + "world",
                                     "hello",
                                     space + "the",
                                     "and",
                                     "ing",
                                     "ll",
                                     "he",
                                     "or",
                                     "in",
                                     "er",
                                     space + "w",
                                     space + "a",
                                     space + "t",
                                     space + "wor",
                                     space + "th",
                                     "hell",
                                     "an",
                                     "ld",
                                     "lo",
                                     space};
  for (char letter = 'a'; letter <= 'z'; ++letter) pieces.emplace_back(1, letter);
  for (size_t i = 0; i < pieces.size(); ++i) {
    scores.push_back(-1.0f - static_cast<float>(i));
    tokens.push_back(pieces[i]);
  }
  types.resize(tokens.size(), kNormalToken);
  writer.AddString("tokenizer.ggml.model", "llama");
  writer.AddString("tokenizer.ggml.pre", "default");
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddFloats("tokenizer.ggml.scores", scores);
  writer.AddInts("tokenizer.ggml.token_type", types);
  writer.AddUint("tokenizer.ggml.bos_token_id", 2);
  writer.AddUint("tokenizer.ggml.eos_token_id", 1);
  writer.AddUint("tokenizer.ggml.unknown_token_id", 3);
  writer.AddBool("tokenizer.ggml.add_bos_token", true);
  writer.AddBool("tokenizer.ggml.add_eos_token", false);
  writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  return static_cast<uint32_t>(tokens.size());
}

void AddHyperparameters(const Shape& shape, GgufWriter& writer) {
  const auto key = [&](std::string_view name) { return StrCat(shape.architecture, ".", name); };
  writer.AddString("general.architecture", shape.architecture);
  writer.AddString("general.name", StrCat("tiny-", shape.architecture));
  writer.AddUint(key("block_count"), shape.layers);
  writer.AddUint(key("context_length"), 2048);
  writer.AddUint(key("embedding_length"), shape.hidden);
  writer.AddUint(key("feed_forward_length"), shape.feed_forward);
  writer.AddUint(key("attention.head_count"), shape.heads);
  writer.AddUint(key("attention.head_count_kv"), shape.kv_heads);
  writer.AddUint(key("attention.key_length"), shape.head_dim);
  writer.AddUint(key("attention.value_length"), shape.head_dim);
  writer.AddFloat(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  if (shape.architecture == "gemma3") {
    writer.AddFloat(key("rope.freq_base"), 1e6f);
    writer.AddUint(key("attention.sliding_window"), 32);
  } else {
    writer.AddFloat(key("rope.freq_base"), 1e4f);
    writer.AddUint(key("rope.dimension_count"), shape.head_dim);
  }
}

class TensorAdder {
 public:
  TensorAdder(GgufWriter& writer, uint64_t seed) : writer_(writer) {
    std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    random_.seed(words);
  }

  void Norm(const std::string& name, uint32_t size) {
    std::vector<float> values(size);
    for (float& value : values) value = 0.75f + static_cast<float>(random_() % 1024) / 2048.0f;
    writer_.AddTensor(StrCat(name, ".weight"), std::vector<uint64_t>{size}, values);
  }

  void Matrix(const std::string& name, TensorType type, uint32_t rows, uint32_t cols, float gain) {
    const float deviation = gain / std::sqrt(static_cast<float>(cols));
    writer_.AddTensor(StrCat(name, ".weight"), type, std::vector<uint64_t>{cols, rows},
                      RandomTensor(type, uint64_t{rows} * cols, deviation, random_));
  }

 private:
  GgufWriter& writer_;
  std::mt19937 random_;
};

void AddLayer(const Shape& shape, uint32_t layer, TensorAdder& add) {
  using enum TensorType;
  const bool gemma = shape.architecture == "gemma3";
  const auto name = [&](std::string_view tensor) { return StrCat("blk.", layer, ".", tensor); };
  const uint32_t q = shape.heads * shape.head_dim;
  const uint32_t kv = shape.kv_heads * shape.head_dim;
  constexpr TensorType kSmall[] = {kQ4_1, kQ5_0, kQ4_0, kQ8_0, kQ5_1, kF16, kBF16};
  constexpr TensorType kDown[] = {kQ4_K, kQ6_K, kQ5_K, kQ4_1};  // 256 columns
  const TensorType type = kSmall[layer % 7];
  add.Norm(name("attn_norm"), shape.hidden);
  add.Matrix(name("attn_q"), type, q, shape.hidden, 1.5f);
  add.Matrix(name("attn_k"), type, kv, shape.hidden, 1.5f);
  add.Matrix(name("attn_v"), layer % 2 == 0 ? kQ8_0 : type, kv, shape.hidden, 1);
  add.Matrix(name("attn_output"), kSmall[(layer + 1) % 7], shape.hidden, q, 1);
  add.Norm(name("ffn_norm"), shape.hidden);
  add.Matrix(name("ffn_gate"), kSmall[(layer + 2) % 7], shape.feed_forward, shape.hidden, 1.5f);
  add.Matrix(name("ffn_up"), kSmall[(layer + 3) % 7], shape.feed_forward, shape.hidden, 1.5f);
  add.Matrix(name("ffn_down"), gemma ? kQ5_0 : kDown[layer % 4], shape.hidden, shape.feed_forward, 1);
  if (!gemma) return;
  add.Norm(name("attn_q_norm"), shape.head_dim);
  add.Norm(name("attn_k_norm"), shape.head_dim);
  add.Norm(name("post_attention_norm"), shape.hidden);
  add.Norm(name("post_ffw_norm"), shape.hidden);
}

}  // namespace

std::string WriteTinyModel(Architecture architecture, uint64_t seed, const std::string& directory) {
  const bool gemma = architecture == Architecture::kGemma3;
  const Shape& shape = gemma ? kTinyGemma3 : kTinyLlama;
  GgufWriter writer;
  AddHyperparameters(shape, writer);
  const uint32_t vocab = gemma ? AddSentencePieceTokenizer(writer) : AddByteLevelTokenizer(writer);
  TensorAdder add(writer, seed);
  // Gemma scales its embedding by sqrt(hidden) = 9.8.
  add.Matrix("token_embd", TensorType::kQ8_0, vocab, shape.hidden, gemma ? 1.0f : 8.0f);
  for (uint32_t layer = 0; layer < shape.layers; ++layer) AddLayer(shape, layer, add);
  add.Norm("output_norm", shape.hidden);
  if (!gemma) add.Matrix("output", TensorType::kF32, vocab, shape.hidden, 2.0f);
  const std::string path = StrCat(directory, "/tiny-", shape.architecture, "-", seed, ".gguf");
  const absl::Status written = writer.WriteFile(path);
  BATON_CHECK(written.ok());
  return path;
}

}  // namespace baton
