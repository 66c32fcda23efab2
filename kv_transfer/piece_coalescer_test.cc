#include "kv_transfer/piece_coalescer.h"

#include <random>

#include "gtest/gtest.h"
#include "kv_transfer/kv_coverage.h"

namespace baton {
namespace {

// 512 bytes per token and layer: a small model's shape.
KvGeometry Geometry(uint32_t layers) {
  KvGeometry geometry{KvType::kF16, 16, {{.layers = {}, .kv_heads = 2, .head_dim = 64}}};
  for (uint32_t layer = 0; layer < layers; ++layer) geometry.groups[0].layers.push_back(layer);
  return geometry;
}

KvPiece Piece(LayerRange layers, TokenRange tokens) {
  return {.group = 0, .layers = layers, .tokens = tokens};
}

TEST(PieceCoalescer, AShortChunkWaitsForItsNextLayers) {
  PieceCoalescer coalescer(Geometry(24), {{0, 10}}, 16, {});
  EXPECT_TRUE(coalescer.Computed({0, 6}, {0, 10}).empty());   // 30 KiB
  EXPECT_TRUE(coalescer.Computed({6, 12}, {0, 10}).empty());  // 60 KiB
  EXPECT_EQ(coalescer.Computed({12, 18}, {0, 10}), std::vector<KvPiece>{Piece({0, 18}, {0, 10})});
  EXPECT_TRUE(coalescer.Computed({18, 24}, {0, 10}).empty());
  EXPECT_EQ(coalescer.Flush(), std::vector<KvPiece>{Piece({18, 24}, {0, 10})});
  EXPECT_TRUE(coalescer.Flush().empty());
}

TEST(PieceCoalescer, ARemainderWaitsForTheSameLayersOfTheNextChunk) {
  PieceCoalescer coalescer(Geometry(6), {{0, 40}}, 16, {});
  EXPECT_TRUE(coalescer.Computed({0, 6}, {0, 10}).empty());
  EXPECT_TRUE(coalescer.Computed({0, 6}, {10, 20}).empty());
  EXPECT_EQ(coalescer.Computed({0, 6}, {20, 30}), std::vector<KvPiece>{Piece({0, 6}, {0, 30})});
  EXPECT_TRUE(coalescer.Computed({0, 6}, {30, 40}).empty());
  EXPECT_EQ(coalescer.Flush().size(), 1);
}

TEST(PieceCoalescer, LargeOnesAreCutBetweenLayersIntoEqualParts) {
  PieceCoalescer coalescer(Geometry(6), {{0, 512}}, 16, {});
  // 256 KiB per layer, 4 layers to a piece at most: two of 3.
  EXPECT_EQ(coalescer.Computed({0, 6}, {0, 512}),
            (std::vector<KvPiece>{Piece({0, 3}, {0, 512}), Piece({3, 6}, {0, 512})}));
}

TEST(PieceCoalescer, ALayerTooLargeByItselfIsCutBetweenBlocks) {
  PieceCoalescer coalescer(Geometry(1), {{0, 10000}}, 16, {});
  // 2048 tokens to a piece at most: 3000 tokens from 5 on are two pieces, cut where both sides have a block's
  // edge.
  const std::vector<KvPiece> pieces = coalescer.Computed({0, 1}, {5, 3005});
  ASSERT_EQ(pieces.size(), 2);
  EXPECT_EQ(pieces[0].tokens.begin, 5);
  EXPECT_EQ(pieces[0].tokens.end % 16, 0);
  EXPECT_EQ(pieces[1].tokens, (TokenRange{pieces[0].tokens.end, 3005}));
}

TEST(PieceCoalescer, WhatIsNotWantedIsNotSent) {
  PieceCoalescer coalescer(Geometry(6), {{100, 400}}, 16, {});
  EXPECT_TRUE(coalescer.Computed({0, 6}, {0, 100}).empty());
  const std::vector<KvPiece> pieces = coalescer.Computed({0, 6}, {90, 1000});
  ASSERT_EQ(pieces.size(), 1);
  EXPECT_EQ(pieces[0], Piece({0, 6}, {100, 400}));
}

TEST(PieceCoalescer, EveryWantedCellOnceAndSmallPiecesOnlyWhereThereIsNoMore) {
  std::mt19937 random(5);
  const auto pick = [&random](uint32_t from, uint32_t to) -> uint32_t {
    return from + random() % (to - from + 1);
  };
  for (int round = 0; round < 100; ++round) {
    const uint32_t layers = pick(1, 12);
    const uint32_t prompt = pick(1, 3000);
    const KvGeometry geometry = Geometry(layers);
    const PieceLimits limits;
    PieceCoalescer coalescer(geometry, {{0, prompt}}, 16 << pick(0, 2), limits);
    KvCoverage coverage(geometry, {{0, prompt}});
    uint32_t early = 0;
    const auto take = [&](const std::vector<KvPiece>& pieces, bool flushed) {
      for (const KvPiece& piece : pieces) {
        ASSERT_TRUE(coverage.Add(0, piece.layers, piece.tokens).ok());
        ASSERT_LE(PieceBytes(geometry, piece), limits.max_bytes);
        if (flushed) continue;
        ++early;
        ASSERT_GE(PieceBytes(geometry, piece), limits.min_bytes);
      }
    };
    const uint32_t at_once = pick(1, layers);
    for (uint32_t begin = 0; begin < prompt;) {
      const uint32_t end = std::min(prompt, begin + pick(1, 600));
      for (uint32_t layer = 0; layer < layers; layer += at_once) {
        take(coalescer.Computed({layer, std::min(layers, layer + at_once)}, {begin, end}), false);
      }
      begin = end;
    }
    take(coalescer.Flush(), true);
    EXPECT_TRUE(coverage.complete());
    if (uint64_t{prompt} * layers * 512 >= 8 * limits.min_bytes * layers) {
      EXPECT_GT(early, 0) << "nothing was sent before the prompt was done";
    }
  }
}

}  // namespace
}  // namespace baton
