#include "engine/model/model_geometry.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

ModelConfig Config(uint32_t window, std::vector<bool> slides) {
  ModelConfig config;
  config.layers = static_cast<uint32_t>(slides.size());
  config.kv_heads = 2;
  config.head_dim = 64;
  config.window_tokens = window;
  config.layer_slides = std::move(slides);
  return config;
}

TEST(ModelGeometryTest, FullLayersAreOneGroup) {
  const KvGeometry geometry = GeometryOf(Config(0, {false, false, false}), KvType::kBF16, 32);
  ASSERT_EQ(geometry.groups.size(), 1u);
  EXPECT_EQ(geometry.type, KvType::kBF16);
  EXPECT_EQ(geometry.block_tokens, 32u);
  EXPECT_EQ(geometry.groups[0].layers, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(geometry.groups[0].window_tokens, 0u);
  EXPECT_EQ(geometry.groups[0].kv_heads, 2u);
  EXPECT_EQ(geometry.groups[0].head_dim, 64u);
}

TEST(ModelGeometryTest, SlidingLayersAreASecondGroup) {
  const KvGeometry geometry = GeometryOf(Config(512, {true, true, false, true}), KvType::kF16, 16);
  ASSERT_EQ(geometry.groups.size(), 2u);
  EXPECT_EQ(geometry.groups[0].layers, (std::vector<uint32_t>{2}));
  EXPECT_EQ(geometry.groups[0].window_tokens, 0u);
  EXPECT_EQ(geometry.groups[1].layers, (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_EQ(geometry.groups[1].window_tokens, 512u);

  const std::vector<LayerPlace> places = PlacesOf(geometry);
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[2].group, 0u);
  EXPECT_EQ(places[2].layer, 0u);
  EXPECT_EQ(places[3].group, 1u);
  EXPECT_EQ(places[3].layer, 2u);
}

TEST(ModelGeometryTest, AModelThatOnlySlidesHasOneGroup) {
  const KvGeometry geometry = GeometryOf(Config(8, {true, true}), KvType::kF16, 16);
  ASSERT_EQ(geometry.groups.size(), 1u);
  EXPECT_EQ(geometry.groups[0].window_tokens, 8u);
}

}  // namespace
}  // namespace baton
