#include "kv_transfer/transfer_plan.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "engine/kv/kv_pools.h"
#include "gtest/gtest.h"
#include "kv_transfer/piece_coalescer.h"
#include "kv_transfer/pool_filler.h"

namespace baton {
namespace {

KvGeometry Geometry(uint32_t block_tokens) {
  return {KvType::kF16,
          block_tokens,
          {{.layers = {0, 2}, .kv_heads = 2, .head_dim = 4},
           {.layers = {1}, .kv_heads = 1, .head_dim = 8, .window_tokens = 16}}};
}

uint64_t Total(const std::vector<DeviceSpan>& spans) {
  uint64_t bytes = 0;
  for (const DeviceSpan& span : spans) bytes += span.bytes;
  return bytes;
}

// The bytes of spans, one after the other.
std::vector<std::byte> Gather(const std::vector<DeviceSpan>& spans) {
  std::vector<std::byte> bytes;
  for (const DeviceSpan& span : spans) bytes.insert(bytes.end(), span.data, span.data + span.bytes);
  return bytes;
}

void Scatter(const std::vector<std::byte>& bytes, const std::vector<DeviceSpan>& spans) {
  ASSERT_EQ(bytes.size(), Total(spans));
  size_t offset = 0;
  for (const DeviceSpan& span : spans) {
    std::memcpy(span.data, bytes.data() + offset, span.bytes);
    offset += span.bytes;
  }
}

class TransferPlanTest : public testing::Test {
 protected:
  std::unique_ptr<KvPools> Pools(const KvGeometry& geometry, uint32_t context, uint32_t step) {
    auto pools = KvPools::Create(device_.get(), geometry, 4 << 20, context, step);
    EXPECT_TRUE(pools.ok()) << pools.status();
    return *std::move(pools);
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
};

TEST_F(TransferPlanTest, EqualBlockSizesMoveWholeBlocksAndMergeNeighbours) {
  const auto pools = Pools(Geometry(8), 64, 8);
  const BlockPool& pool = pools->pool(0);
  const std::vector<uint32_t> table = {4, 5, 9, 1};
  const KvPiece piece{.group = 0, .layers = {0, 2}, .tokens = {0, 32}};
  const std::vector<DeviceSpan> spans = PieceSpans(pools->geometry(), pool, table, 8, piece);
  ASSERT_EQ(spans.size(), 6);  // per layer: blocks 4 and 5 together, 9, 1
  EXPECT_EQ(spans[0].data, pool.plane(0, 4).data);
  EXPECT_EQ(spans[0].bytes, 2 * pools->geometry().plane_bytes(0));
  EXPECT_EQ(spans[1].data, pool.plane(0, 9).data);
  EXPECT_EQ(spans[2].data, pool.plane(0, 1).data);
  EXPECT_EQ(spans[3].data, pool.plane(1, 4).data);
  EXPECT_EQ(Total(spans), PieceBytes(pools->geometry(), piece));
}

TEST_F(TransferPlanTest, PartOfABlockIsOneSpanPerHeadOfKAndV) {
  const auto pools = Pools(Geometry(8), 64, 8);
  const std::vector<uint32_t> table = {0, 1, 2, 3};
  const KvPiece piece{.group = 0, .layers = {1, 2}, .tokens = {3, 5}};
  const std::vector<DeviceSpan> spans = PieceSpans(pools->geometry(), pools->pool(0), table, 8, piece);
  ASSERT_EQ(spans.size(), 4);  // K heads 0, 1, V heads 0, 1
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(spans[row].data - pools->pool(0).plane(1, 0).data, (row * 8 + 3) * 4 * 2);
    EXPECT_EQ(spans[row].bytes, 2 * 4 * 2);
  }
}

TEST_F(TransferPlanTest, RollingTablesWrap) {
  const auto pools = Pools(Geometry(8), 64, 8);
  const std::vector<uint32_t> table = {7, 3, 5};
  const KvPiece piece{.group = 1, .layers = {0, 1}, .tokens = {32, 48}};  // slots 4 % 3 and 5 % 3
  const std::vector<DeviceSpan> spans = PieceSpans(pools->geometry(), pools->pool(1), table, 8, piece);
  ASSERT_EQ(spans.size(), 2);
  EXPECT_EQ(spans[0].data, pools->pool(1).plane(0, 3).data);
  EXPECT_EQ(spans[1].data, pools->pool(1).plane(0, 5).data);
}

TEST_F(TransferPlanTest, TokensFitKnowsWhereATableWraps) {
  EXPECT_TRUE(TokensFit(8, 0, {5, 5}));
  EXPECT_FALSE(TokensFit(8, 0, {5, 6}));
  EXPECT_TRUE(TokensFit(8, 2, {8, 24}));
  EXPECT_FALSE(TokensFit(8, 2, {7, 24}));
  EXPECT_FALSE(TokensFit(8, 2, {8, 25}));
  EXPECT_TRUE(TokensFit(8, 2, {7, 16}));
  EXPECT_TRUE(TokensFit(8, 0x20000000, {0, 0xffffffff}));
}

TEST_F(TransferPlanTest, CheckPieceRefusesWhatIsNoRectangleOfTheGeometry) {
  const KvGeometry geometry = Geometry(8);
  EXPECT_TRUE(CheckPiece(geometry, {.group = 0, .layers = {0, 2}, .tokens = {0, 1}}).ok());
  EXPECT_FALSE(CheckPiece(geometry, {.group = 2, .layers = {0, 1}, .tokens = {0, 1}}).ok());
  EXPECT_FALSE(CheckPiece(geometry, {.group = 0, .layers = {0, 3}, .tokens = {0, 1}}).ok());
  EXPECT_FALSE(CheckPiece(geometry, {.group = 0, .layers = {1, 1}, .tokens = {0, 1}}).ok());
  EXPECT_FALSE(CheckPiece(geometry, {.group = 0, .layers = {2, 1}, .tokens = {0, 1}}).ok());
  EXPECT_FALSE(CheckPiece(geometry, {.group = 0, .layers = {0, 1}, .tokens = {5, 5}}).ok());
  EXPECT_FALSE(CheckPiece(geometry, {.group = 0, .layers = {0, 1}, .tokens = {6, 5}}).ok());
}

TEST_F(TransferPlanTest, WantedIsWhatDecodeReads) {
  const std::vector<TokenRange> wanted = WantedAfter(Geometry(8), 40);
  EXPECT_EQ(wanted, (std::vector<TokenRange>{{0, 40}, {25, 40}}));
  EXPECT_EQ(WantedBytes(Geometry(8), wanted), 40 * 32 * 2 + 15 * 32);
}

// Whatever the geometry, the two block sizes, the chunks, the layer ranges, the piece sizes and the order of
// arrival: every wanted element arrives in its place, and nothing else is touched.
TEST_F(TransferPlanTest, TheSameBytesLandWhateverTheWay) {
  std::mt19937 random(11);
  const auto pick = [&random](uint32_t from, uint32_t to) -> uint32_t {
    return from + random() % (to - from + 1);
  };
  const uint32_t sizes[] = {1, 8, 16, 32};
  for (int round = 0; round < 150; ++round) {
    const KvType types[] = {KvType::kF16, KvType::kF32, KvType::kBF16};
    const uint32_t model_layers = pick(1, 5);
    KvGeometry source_geometry{types[pick(0, 2)], sizes[pick(0, 3)], {}};
    CacheGroup full{.layers = {}, .kv_heads = pick(1, 3), .head_dim = pick(1, 5)};
    CacheGroup sliding{
        .layers = {}, .kv_heads = pick(1, 2), .head_dim = pick(1, 3), .window_tokens = pick(1, 40)};
    for (uint32_t layer = 0; layer < model_layers; ++layer) {
      (random() % 2 ? full : sliding).layers.push_back(layer);
    }
    if (!full.layers.empty()) source_geometry.groups.push_back(full);
    if (!sliding.layers.empty()) source_geometry.groups.push_back(sliding);
    KvGeometry target_geometry = source_geometry;
    target_geometry.block_tokens = sizes[pick(0, 3)];
    const uint32_t segment = SegmentTokens(source_geometry.block_tokens, target_geometry.block_tokens);

    const uint32_t prompt = pick(1, 90);
    const uint32_t step = pick(1, 40);
    const auto source = Pools(source_geometry, 128, step);
    const auto target = Pools(target_geometry, 128, pick(1, 40));
    std::vector<SequenceKv> other;  // so that block ids of the two sides differ
    other.push_back(*target->Reserve(pick(1, 60)));
    const SequenceKv from = *source->Reserve(prompt);
    const SequenceKv to = *target->Reserve(prompt + pick(0, 30));
    const std::vector<TokenRange> wanted = WantedAfter(source_geometry, prompt);

    const PieceLimits limits{.min_bytes = pick(1, 2000), .max_bytes = pick(100, 4000)};
    PieceCoalescer coalescer(source_geometry, wanted,
                             std::max(source_geometry.block_tokens, target_geometry.block_tokens), limits);
    std::vector<KvPiece> pieces;
    const uint32_t layers_at_once = pick(1, 5);
    for (uint32_t begin = 0; begin < prompt;) {
      const TokenRange chunk{begin, std::min(prompt, begin + pick(1, step))};
      for (uint32_t layer = 0; layer < model_layers; layer += layers_at_once) {
        const std::vector<KvPiece> more = coalescer.Computed({layer, layer + layers_at_once}, chunk);
        pieces.insert(pieces.end(), more.begin(), more.end());
      }
      begin = chunk.end;
    }
    const std::vector<KvPiece> rest = coalescer.Flush();
    pieces.insert(pieces.end(), rest.begin(), rest.end());

    PoolFiller filled(source.get(), &from);
    for (uint32_t g = 0; g < wanted.size(); ++g) filled.Fill(g, wanted[g], round);
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (const KvPiece& piece : pieces) {
      ASSERT_TRUE(CheckPiece(target_geometry, piece).ok());
      const auto read =
          PieceSpans(source_geometry, source->pool(piece.group), from.table(piece.group), segment, piece);
      const auto written =
          PieceSpans(target_geometry, target->pool(piece.group), to.table(piece.group), segment, piece);
      ASSERT_EQ(Total(read), PieceBytes(source_geometry, piece));
      Scatter(Gather(read), written);
    }
    const PoolFiller landed(target.get(), &to);
    for (uint32_t g = 0; g < wanted.size(); ++g) {
      ASSERT_EQ(landed.Differing(g, wanted[g], round), 0) << "round " << round << " group " << g;
      const uint32_t slots_end = (wanted[g].end + target_geometry.block_tokens - 1) /
                                 target_geometry.block_tokens * target_geometry.block_tokens;
      ASSERT_EQ(landed.NonZero(g, {wanted[g].end, slots_end}), 0) << "after the prompt, in its last block";
      const PoolFiller untouched(target.get(), &other[0]);
      const auto other_end = static_cast<uint32_t>(other[0].table(g).size()) * target_geometry.block_tokens;
      ASSERT_EQ(untouched.NonZero(g, {0, other_end}), 0) << "another sequence's blocks";
    }
  }
}

}  // namespace
}  // namespace baton
