#include "engine/kv/kv_geometry.h"

#include <set>

#include "gtest/gtest.h"

namespace baton {
namespace {

KvGeometry Mixed(uint32_t block_tokens, uint32_t window) {
  return {KvType::kF16,
          block_tokens,
          {{.layers = {0, 2, 3}, .kv_heads = 2, .head_dim = 64},
           {.layers = {1, 4}, .kv_heads = 1, .head_dim = 8, .window_tokens = window}}};
}

TEST(KvGeometry, Bytes) {
  const KvGeometry geometry = Mixed(16, 32);
  EXPECT_EQ(geometry.token_bytes(0), 2 * 2 * 64 * 2);
  EXPECT_EQ(geometry.plane_bytes(0), 512 * 16);
  EXPECT_EQ(geometry.block_bytes(0), 512 * 16 * 3);
  EXPECT_EQ(geometry.block_bytes(1), 2 * 8 * 2 * 16 * 2);
  EXPECT_EQ(KvTypeBytes(KvType::kF32), 4);
  EXPECT_EQ(KvTypeBytes(KvType::kBF16), 2);
}

TEST(KvGeometry, FullGroupsTakeBlocksForEveryToken) {
  const KvGeometry geometry = Mixed(16, 32);
  EXPECT_EQ(geometry.BlocksFor(0, 0, 8), 0);
  EXPECT_EQ(geometry.BlocksFor(0, 1, 8), 1);
  EXPECT_EQ(geometry.BlocksFor(0, 16, 8), 1);
  EXPECT_EQ(geometry.BlocksFor(0, 17, 8), 2);
  EXPECT_EQ(geometry.BlocksFor(0, 0xffffffff, 8), 0x10000000);
}

// The oracle walks every step of every alignment and counts the blocks that are read or written at once.
TEST(KvGeometry, RollingGroupsTakeExactlyWhatTheWorstStepTouches) {
  for (const uint32_t block : {1u, 4u, 8u}) {
    for (uint32_t window = 1; window <= 19; ++window) {
      for (uint32_t step = 1; step <= 10; ++step) {
        const KvGeometry geometry = Mixed(block, window);
        size_t most = 0;
        for (uint32_t position = 0; position < 64; ++position) {
          const uint32_t oldest = position + 1 > window ? position + 1 - window : 0;
          std::set<uint32_t> touched;
          for (uint32_t token = oldest; token < position + step; ++token) touched.insert(token / block);
          most = std::max(most, touched.size());
        }
        EXPECT_EQ(geometry.BlocksFor(1, 100000, step), most) << block << " " << window << " " << step;
        EXPECT_EQ(geometry.BlocksFor(1, 1, step), 1);
      }
    }
  }
}

TEST(KvGeometry, NeededAfterIsWhatTheNextRowReadsOfThePast) {
  const KvGeometry geometry = Mixed(16, 4);
  EXPECT_EQ(geometry.NeededAfter(0, 10), (TokenRange{0, 10}));
  EXPECT_EQ(geometry.NeededAfter(1, 0), (TokenRange{0, 0}));
  EXPECT_EQ(geometry.NeededAfter(1, 3), (TokenRange{0, 3}));
  EXPECT_EQ(geometry.NeededAfter(1, 4), (TokenRange{1, 4}));
  EXPECT_EQ(geometry.NeededAfter(1, 10), (TokenRange{7, 10}));
  EXPECT_TRUE(Mixed(16, 1).NeededAfter(1, 10).empty());
}

TEST(KvGeometry, LayersOfAGroupWithinAModelRange) {
  const KvGeometry geometry = Mixed(16, 4);
  EXPECT_EQ(geometry.LayersOf(0, {0, 3}), (LayerRange{0, 2}));
  EXPECT_EQ(geometry.LayersOf(1, {0, 3}), (LayerRange{0, 1}));
  EXPECT_EQ(geometry.LayersOf(0, {3, 99}), (LayerRange{2, 3}));
  EXPECT_TRUE(geometry.LayersOf(1, {2, 4}).empty());
}

TEST(KvGeometry, LayoutIdNamesEverythingButTheBlockSize) {
  const KvGeometry geometry = Mixed(16, 4);
  EXPECT_EQ(geometry.LayoutId(),
            "f16;layers=0,2-3,kv_heads=2,head_dim=64,window=0;layers=1,4,kv_heads=1,head_dim=8,window=4");
  EXPECT_EQ(geometry.LayoutId(), Mixed(8, 4).LayoutId());
  EXPECT_NE(geometry.LayoutId(), Mixed(16, 5).LayoutId());
  KvGeometry other = geometry;
  other.type = KvType::kBF16;
  EXPECT_NE(geometry.LayoutId(), other.LayoutId());
}

TEST(KvGeometry, CheckRefusesWhatIsNoGeometry) {
  EXPECT_TRUE(Mixed(16, 4).Check().ok());
  const auto refused = [](auto change) {
    KvGeometry geometry = Mixed(16, 4);
    change(geometry);
    return geometry.Check().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](KvGeometry& g) { g.block_tokens = 0; }));
  EXPECT_TRUE(refused([](KvGeometry& g) { g.block_tokens = 24; }));
  EXPECT_TRUE(refused([](KvGeometry& g) { g.groups.clear(); }));
  EXPECT_TRUE(refused([](KvGeometry& g) { g.groups[0].layers.clear(); }));
  EXPECT_TRUE(refused([](KvGeometry& g) { g.groups[0].layers = {0, 1}; }));  // 1 is in group 1 too
  EXPECT_TRUE(refused([](KvGeometry& g) { g.groups[0].layers = {2, 0}; }));
  EXPECT_TRUE(refused([](KvGeometry& g) { g.groups[1].kv_heads = 0; }));
  EXPECT_TRUE(refused([](KvGeometry& g) { g.groups[1].head_dim = 1u << 31; }));
}

}  // namespace
}  // namespace baton
