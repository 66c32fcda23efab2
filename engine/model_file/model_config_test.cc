#include "engine/model_file/model_config.h"

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/model_file/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::HasSubstr;

using Shapes = std::map<std::string, std::vector<uint64_t>>;

struct TinyFile {
  std::string architecture;
  std::map<std::string, uint64_t> counts;
  std::map<std::string, float> numbers;
  Shapes shapes;
  std::function<void(GgufWriter&)> more;

  absl::StatusOr<ModelConfig> Read() const {
    GgufWriter writer;
    if (!architecture.empty()) writer.AddString("general.architecture", architecture);
    for (const auto& [name, value] : counts) writer.AddUint(architecture + "." + name, value);
    for (const auto& [name, value] : numbers) writer.AddFloat(architecture + "." + name, value);
    if (more) more(writer);
    for (const auto& [name, dims] : shapes) {
      uint64_t elements = 1;
      for (uint64_t dim : dims) elements *= dim;
      writer.AddTensor(name, dims, std::vector<float>(elements));
    }
    const std::vector<std::byte> bytes = writer.Serialize();
    const auto file = ModelFile::Parse(bytes);
    if (!file.ok()) return file.status();
    return ReadModelConfig(**file);
  }
};

// Hidden 12, 3 heads on 1 KV head of 4, feed-forward 8, vocabulary 5.
TinyFile Tiny(const std::string& architecture, uint64_t layers) {
  TinyFile tiny;
  tiny.architecture = architecture;
  tiny.counts = {{"context_length", 64},      {"block_count", layers},      {"embedding_length", 12},
                 {"feed_forward_length", 8},  {"attention.head_count", 3},  {"attention.head_count_kv", 1},
                 {"attention.key_length", 4}, {"attention.value_length", 4}};
  tiny.numbers = {{"attention.layer_norm_rms_epsilon", 1e-5f}, {"rope.freq_base", 1e6f}};
  tiny.shapes = {{"token_embd.weight", {12, 5}}, {"output_norm.weight", {12}}};
  for (uint64_t layer = 0; layer < layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    const Shapes shapes = {{"attn_norm", {12}},   {"attn_q", {12, 12}},      {"attn_k", {12, 4}},
                           {"attn_v", {12, 4}},   {"attn_output", {12, 12}}, {"ffn_norm", {12}},
                           {"ffn_gate", {12, 8}}, {"ffn_up", {12, 8}},       {"ffn_down", {8, 12}}};
    for (const auto& [name, dims] : shapes) tiny.shapes[block + name + ".weight"] = dims;
    if (architecture != "gemma3") continue;
    const Shapes norms = {
        {"attn_q_norm", {4}}, {"attn_k_norm", {4}}, {"post_attention_norm", {12}}, {"post_ffw_norm", {12}}};
    for (const auto& [name, dims] : norms) tiny.shapes[block + name + ".weight"] = dims;
  }
  return tiny;
}

TinyFile TinyGemma() {
  TinyFile tiny = Tiny("gemma3", 7);
  tiny.counts["attention.sliding_window"] = 16;
  return tiny;
}

void ExpectRefused(const TinyFile& tiny, absl::StatusCode code, const std::string& text) {
  const absl::Status status = tiny.Read().status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(ModelConfigTest, ReadsLlama) {
  const auto config = Tiny("llama", 2).Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, Architecture::kLlama);
  EXPECT_EQ(config->name, "llama");
  EXPECT_EQ(config->vocab_size, 5);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->rope_dims, 4);
  EXPECT_EQ(config->rope_base, 1e6f);
  EXPECT_EQ(config->window_tokens, 0);
  EXPECT_EQ(config->layer_slides, std::vector<bool>(2, false));
  EXPECT_TRUE(config->tied_head);
  EXPECT_EQ(config->attention_scale, 0.5f);
  EXPECT_EQ(config->embedding_scale, 1.0f);
}

TEST(ModelConfigTest, LlamaHasDefaultsForWhatOlderFilesLeaveOut) {
  TinyFile tiny = Tiny("llama", 1);
  for (const char* name : {"attention.key_length", "attention.value_length"}) tiny.counts.erase(name);
  tiny.numbers.erase("rope.freq_base");
  tiny.shapes["output.weight"] = {12, 5};
  const auto config = tiny.Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->rope_base, 10000.0f);
  EXPECT_FALSE(config->tied_head);
}

TEST(ModelConfigTest, ReadsTheDivisorsOfRotation) {
  TinyFile tiny = Tiny("llama", 1);
  tiny.more = [](GgufWriter& writer) {
    writer.AddTensor("rope_freqs.weight", {2}, std::vector<float>{1.0f, 8.0f});
  };
  const auto config = tiny.Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_divisors, (std::vector<float>{1.0f, 8.0f}));

  for (const float wrong : {0.0f, -1.0f, std::nanf(""), HUGE_VALF}) {
    tiny.more = [=](GgufWriter& writer) {
      writer.AddTensor("rope_freqs.weight", {2}, std::vector<float>{1.0f, wrong});
    };
    ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "each must be finite and above 0");
  }
  tiny.more = nullptr;
  tiny.shapes["rope_freqs.weight"] = {3};
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "have the shape [2]");
}

TEST(ModelConfigTest, ReadsGemma3) {
  const auto config = TinyGemma().Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, Architecture::kGemma3);
  EXPECT_EQ(config->window_tokens, 16);
  EXPECT_EQ(config->layer_slides, (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_EQ(config->rope_base, 1e6f);
  EXPECT_EQ(config->rope_base_sliding, 10000.0f);
  EXPECT_EQ(config->embedding_scale, std::sqrt(12.0f));
  EXPECT_EQ(config->attention_scale, 0.5f);
}

TEST(ModelConfigTest, Gemma3TakesTheFilesOwnPattern) {
  TinyFile tiny = TinyGemma();
  tiny.counts["attention.sliding_window_pattern"] = 2;
  EXPECT_EQ(tiny.Read()->layer_slides, (std::vector<bool>{true, false, true, false, true, false, true}));
  tiny.counts["attention.sliding_window_pattern"] = 1;
  EXPECT_EQ(tiny.Read()->layer_slides, std::vector<bool>(7, false));
  tiny.counts.erase("attention.sliding_window_pattern");
  const std::vector<bool> pattern = {false, true, true, false, false, false, true};
  tiny.more = [&](GgufWriter& writer) {
    writer.AddBools("gemma3.attention.sliding_window_pattern", pattern);
  };
  EXPECT_EQ(tiny.Read()->layer_slides, pattern);
  tiny.more = [&](GgufWriter& writer) { writer.AddBools("gemma3.attention.sliding_window_pattern", {true}); };
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument,
                "sliding_window_pattern has 1 elements, must have 7");
}

TEST(ModelConfigTest, ScalesRopeOnlyLinearly) {
  TinyFile tiny = TinyGemma();
  tiny.numbers["rope.scaling.factor"] = 8.0f;
  tiny.more = [](GgufWriter& writer) { writer.AddString("gemma3.rope.scaling.type", "linear"); };
  EXPECT_EQ(tiny.Read()->rope_scale, 0.125f);
  tiny.more = [](GgufWriter& writer) { writer.AddString("gemma3.rope.scaling.type", "yarn"); };
  ExpectRefused(tiny, absl::StatusCode::kUnimplemented, "rope.scaling.type is \"yarn\"");
}

TEST(ModelConfigTest, RefusesOtherArchitectures) {
  ExpectRefused(Tiny("mamba", 1), absl::StatusCode::kUnimplemented, "general.architecture is \"mamba\"");
  TinyFile tiny = Tiny("llama", 1);
  tiny.architecture = "";
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "general.architecture is missing");
}

TEST(ModelConfigTest, RefusesCountsThatMakeNoSense) {
  const auto refused = [](const std::string& name, uint64_t value, const std::string& text) {
    TinyFile tiny = Tiny("llama", 1);
    tiny.counts[name] = value;
    ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, text);
  };
  refused("block_count", 0, "llama.block_count is 0, must be 1 to 1024");
  refused("block_count", uint64_t{1} << 32, "llama.block_count is 4294967296, must be 1 to 1024");
  refused("embedding_length", 0, "llama.embedding_length is 0");
  refused("context_length", UINT64_MAX, "llama.context_length is 18446744073709551615");
  refused("attention.head_count", 0, "attention.head_count is 0");
  refused("attention.head_count_kv", 2, "must be a multiple of the 2 KV heads");
  refused("attention.head_count_kv", 4, "attention.head_count_kv is 4, must be 1 to 3");
  refused("attention.head_count_kv", 0, "attention.head_count_kv is 0");
  refused("rope.dimension_count", 3, "rope.dimension_count is 3, must be even");
  refused("rope.dimension_count", 6, "rope.dimension_count is 6, must be 1 to 4");
  refused("vocab_size", 6, "llama.vocab_size is 6, token_embd.weight has 5 rows");
  TinyFile tiny = Tiny("llama", 1);
  tiny.counts["attention.value_length"] = 2;
  ExpectRefused(tiny, absl::StatusCode::kUnimplemented, "attention.value_length is 2");
  tiny = Tiny("llama", 1);
  tiny.counts.erase("context_length");
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "llama.context_length is missing");
  tiny = Tiny("llama", 1);
  tiny.counts["expert_count"] = 8;
  ExpectRefused(tiny, absl::StatusCode::kUnimplemented, "llama.expert_count is 8");
  tiny = Tiny("llama", 1);
  tiny.counts.erase("attention.head_count_kv");
  tiny.more = [](GgufWriter& writer) { writer.AddInts("llama.attention.head_count_kv", {1}); };
  ExpectRefused(tiny, absl::StatusCode::kUnimplemented, "attention.head_count_kv differs by layer");
}

TEST(ModelConfigTest, RefusesNumbersThatMakeNoSense) {
  const auto refused = [](const std::string& name, float value, const std::string& text) {
    TinyFile tiny = Tiny("llama", 1);
    tiny.numbers[name] = value;
    ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, text);
  };
  refused("rope.freq_base", NAN, "llama.rope.freq_base is nan");
  refused("rope.freq_base", INFINITY, "llama.rope.freq_base is inf");
  refused("rope.freq_base", -1, "llama.rope.freq_base is -1");
  refused("attention.layer_norm_rms_epsilon", 0, "epsilon is 0, must be above 0 and at most 1");
}

TEST(ModelConfigTest, RefusesTensorsThatDoNotFit) {
  TinyFile tiny = Tiny("llama", 2);
  tiny.shapes.erase("blk.1.ffn_up.weight");
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "tensor blk.1.ffn_up.weight is missing");
  tiny = Tiny("llama", 2);
  tiny.shapes["blk.1.attn_k.weight"] = {4, 12};
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument,
                "tensor blk.1.attn_k.weight has the shape [4, 12], must have [12, 4]");
  tiny = Tiny("llama", 2);
  tiny.shapes["blk.0.attn_q.bias"] = {12};
  ExpectRefused(tiny, absl::StatusCode::kUnimplemented, "tensor \"blk.0.attn_q.bias\" has no place");
  tiny = Tiny("llama", 2);
  tiny.shapes["token_embd.weight"] = {12};
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "token_embd.weight is missing or not a matrix");
  tiny = TinyGemma();
  tiny.shapes["blk.3.attn_q_norm.weight"] = {12};
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument,
                "tensor blk.3.attn_q_norm.weight has the shape [12]");
}

TEST(ModelConfigTest, RefusesATokenizerOfAnotherSize) {
  TinyFile tiny = Tiny("llama", 1);
  const std::vector<std::string> tokens = {"a", "b"};
  tiny.more = [&](GgufWriter& writer) { writer.AddStrings("tokenizer.ggml.tokens", tokens); };
  ExpectRefused(tiny, absl::StatusCode::kInvalidArgument, "tokenizer.ggml.tokens has 2 tokens");
}

}  // namespace
}  // namespace baton
