// Attention of every level at the borders of tiles, segments, blocks and windows: near the reference, and the
// same bits for a row however it comes.
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/kv/kv_geometry.h"
#include "engine/ops/batch.h"
#include "engine/ops/cpu/cpu_ops_test.h"
#include "engine/ops/ops.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

constexpr uint32_t kTokens = 530;
constexpr uint32_t kBorders[] = {0, 1, 30, 31, 32, 33, 63, 254, 255, 256, 257, 287, 300, 511, 512, 513, 529};

struct Chunk {
  uint32_t begin, rows;
};
constexpr Chunk kChunks[] = {{0, 33}, {29, 5}, {253, 7}, {512, 18}};

struct Case {
  KvType type;
  uint32_t heads, kv_heads, head_dim, window, block_tokens;
};

// A layer of a pool whose blocks lie in the reverse order, full of numbers that every element type holds.
class Pool {
 public:
  explicit Pool(const Case& c) {
    kv_ = {.type = c.type,
           .kv_heads = c.kv_heads,
           .head_dim = c.head_dim,
           .block_tokens = c.block_tokens,
           .window_tokens = c.window};
    kv_.plane_bytes = uint64_t{2} * c.kv_heads * c.block_tokens * c.head_dim * KvTypeBytes(c.type);
    const uint32_t blocks = (kTokens + c.block_tokens - 1) / c.block_tokens;
    for (uint32_t block = blocks; block > 0; --block) table_.push_back(block - 1);
    bytes_.resize(blocks * kv_.plane_bytes);
    kv_.planes = {bytes_.data(), bytes_.size()};
    std::mt19937 random(7);
    for (uint64_t i = 0; i < bytes_.size(); i += KvTypeBytes(c.type)) {
      // Seven bits of fraction, exponents from 2^-3 to 2^0.
      const uint32_t sign = random() & 1, exponent = 124 + random() % 4, fraction = random() & 127;
      const uint32_t bits = sign << 31 | exponent << 23 | fraction << 16;
      const uint16_t bf16 = static_cast<uint16_t>(bits >> 16);
      const uint16_t f16 = static_cast<uint16_t>(sign << 15 | (exponent - 112) << 10 | fraction << 3);
      const void* const from = c.type == KvType::kF32   ? static_cast<const void*>(&bits)
                               : c.type == KvType::kF16 ? &f16
                                                        : &bf16;
      std::memcpy(bytes_.data() + i, from, KvTypeBytes(c.type));
    }
  }

  const KvLayer& layer() const { return kv_; }

  // One row at each of `positions`, sequences of their own over the same blocks.
  Batch RowsAt(absl::Span<const uint32_t> positions) const {
    Batch batch;
    for (const uint32_t position : positions) Append(batch, position, 1);
    return batch;
  }
  void Append(Batch& batch, uint32_t position, uint32_t rows) const {
    batch.sequences.push_back(
        {.first_row = batch.rows(), .rows = rows, .position = position, .tables = {table_}});
    batch.tokens.resize(batch.tokens.size() + rows);
  }

 private:
  KvLayer kv_;
  std::vector<uint32_t> table_;
  std::vector<std::byte> bytes_;
};

class AttentionTest : public ::testing::TestWithParam<Case> {
 protected:
  uint32_t row_floats() const { return GetParam().heads * GetParam().head_dim; }

  // `queries` are those of positions 0, 1 ...; a batch takes those of its own positions.
  std::vector<float> Attend(Ops& ops, const Batch& batch, const std::vector<float>& queries) const {
    std::vector<float> query, attended(batch.rows() * row_floats(), NAN);
    for (const BatchSequence& sequence : batch.sequences) {
      const auto begin = queries.begin() + sequence.position * row_floats();
      query.insert(query.end(), begin, begin + sequence.rows * row_floats());
    }
    AttentionWeights weights;
    weights.heads = GetParam().heads;
    weights.scale = 1.0f / std::sqrt(static_cast<float>(GetParam().head_dim));
    ops.BeginStep(batch);
    ops.Attention(weights, pool_.layer(), SpanOf(query), SpanOf(attended));
    return attended;
  }

  std::vector<float> RowOf(const std::vector<float>& attended, uint32_t row) const {
    const auto begin = attended.begin() + row * row_floats();
    return {begin, begin + row_floats()};
  }

  Pool pool_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         ::testing::Values(Case{KvType::kF16, 6, 2, 64, 0, 16},
                                           Case{KvType::kF16, 4, 1, 40, 300, 16},
                                           Case{KvType::kBF16, 2, 2, 17, 33, 64},
                                           Case{KvType::kF32, 5, 1, 32, 256, 4}));

TEST_P(AttentionTest, IsTheSameHoweverRowsComeAndNearTheReference) {
  auto device = CreateCpuDevice();
  const std::vector<float> queries = RandomRows(kTokens * row_floats(), 3);
  std::vector<float> expected, first_level;
  for (auto& [name, ops] : AllOps(device.get())) {
    ASSERT_TRUE(ops->Reserve({.rows = kTokens, .hidden = 1, .feed_forward = 1, .qkv = 1}).ok());
    const std::vector<float> together = Attend(*ops, pool_.RowsAt(kBorders), queries);
    if (name == "reference") {
      expected = together;
      continue;
    }
    if (first_level.empty()) first_level = together;
    ASSERT_EQ(together, first_level) << name;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(together[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << name << " [" << i << "]";
    }
    for (uint32_t i = 0; i < std::size(kBorders); ++i) {
      const uint32_t position = kBorders[i];
      const std::vector<float> row = RowOf(together, i);
      // Alone, where several threads share a row, and among the rows of a prompt's chunk.
      ASSERT_EQ(Attend(*ops, pool_.RowsAt({position}), queries), row) << name << " at " << position;
      for (const Chunk& chunk : kChunks) {
        if (position < chunk.begin || position >= chunk.begin + chunk.rows) continue;
        Batch batch;
        pool_.Append(batch, chunk.begin, chunk.rows);
        const std::vector<float> rows = Attend(*ops, batch, queries);
        ASSERT_EQ(RowOf(rows, position - chunk.begin), row) << name << " at " << position << " of a chunk";
      }
    }
  }
}

}  // namespace
}  // namespace baton
