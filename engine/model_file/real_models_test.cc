// The two real models' files give the hyperparameters that their publishers state.

#include <cmath>

#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"
#include "gtest/gtest.h"
#include "tests/support/model_path.h"

namespace baton {
namespace {

TEST(RealModelsTest, SmolLm2) {
  const auto file = ModelFile::Open(ModelPath(kSmolLm2File));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size_bytes(), 98'362'432);
  // By Python's xxhash.xxh3_128_hexdigest.
  EXPECT_EQ((*file)->content_hash(), "1dff70ef9e211d0ab8951aa641e75aa1");
  const auto config = ReadModelConfig(**file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, Architecture::kLlama);
  EXPECT_EQ(config->vocab_size, 49152);
  EXPECT_EQ(config->context_tokens, 8192);
  EXPECT_EQ(config->layers, 30);
  EXPECT_EQ(config->hidden, 576);
  EXPECT_EQ(config->feed_forward, 1536);
  EXPECT_EQ(config->heads, 9);
  EXPECT_EQ(config->kv_heads, 3);
  EXPECT_EQ(config->head_dim, 64);
  EXPECT_EQ(config->rope_dims, 64);
  EXPECT_EQ(config->rope_base, 1e5f);
  EXPECT_EQ(config->window_tokens, 0);
  EXPECT_TRUE(config->tied_head);
  EXPECT_EQ(config->attention_scale, 0.125f);
  EXPECT_EQ((*file)->FindTensor("token_embd.weight")->type, TensorType::kQ8_0);
}

TEST(RealModelsTest, Gemma3) {
  const auto file = ModelFile::Open(ModelPath(kGemma3File));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->content_hash(), "24a425df14b444ea9334a390523ab4e2");
  const auto config = ReadModelConfig(**file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, Architecture::kGemma3);
  EXPECT_EQ(config->vocab_size, 262144);
  EXPECT_EQ(config->context_tokens, 32768);
  EXPECT_EQ(config->layers, 18);
  EXPECT_EQ(config->hidden, 640);
  EXPECT_EQ(config->feed_forward, 2048);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 1);
  EXPECT_EQ(config->head_dim, 256);
  EXPECT_EQ(config->rope_base, 1e6f);
  EXPECT_EQ(config->rope_base_sliding, 1e4f);
  EXPECT_EQ(config->window_tokens, 512);
  for (uint32_t layer = 0; layer < config->layers; ++layer) {
    EXPECT_EQ(config->layer_slides[layer], layer != 5 && layer != 11 && layer != 17) << layer;
  }
  EXPECT_TRUE(config->tied_head);
  EXPECT_EQ(config->attention_scale, 1.0f / 16);
  EXPECT_EQ(config->embedding_scale, std::sqrt(640.0f));
}

}  // namespace
}  // namespace baton
