#include "engine/ops/cpu/attention_items.h"

#include <algorithm>

#include "common/check.h"

namespace baton {
namespace {

constexpr uint32_t kItemRows = 16;
constexpr uint32_t kItemQueries = 64;  // rows * heads, unless one row has more

}  // namespace

std::vector<AttentionItem> CutAttention(const Batch& batch, uint32_t heads, uint32_t kv_heads,
                                        uint32_t threads) {
  const uint32_t per_kv = heads / kv_heads;
  const uint32_t item_rows = std::clamp(kItemQueries / per_kv, 1u, kItemRows);
  uint32_t blocks = 0;
  for (const BatchSequence& sequence : batch.sequences) blocks += (sequence.rows + item_rows - 1) / item_rows;
  const bool few = blocks * kv_heads < 2 * threads;
  const uint32_t item_heads = few ? std::max(1u, per_kv / threads) : per_kv;
  std::vector<AttentionItem> items;
  for (const BatchSequence& sequence : batch.sequences) {
    for (uint32_t end = sequence.rows; end > 0;) {
      const uint32_t first = (end - 1) / item_rows * item_rows;
      for (uint32_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
        for (uint32_t head = 0; head < per_kv; head += item_heads) {
          items.push_back({&sequence, first, end - first, kv_head, kv_head * per_kv + head,
                           std::min(item_heads, per_kv - head)});
        }
      }
      end = first;
    }
  }
  return items;
}

uint64_t AttentionScratchFloats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim) {
  const uint64_t width = (uint64_t{head_dim} + 31) / 32 * 32;
  const uint64_t queries = std::max(kItemQueries, heads / kv_heads);
  return 2 * kKeyTile * width + queries * (2 * width + kKeyTile + 17);
}

AttentionArgs ArgsFor(const AttentionItem& item, const KvLayer& kv, uint32_t heads, float scale,
                      const float* query, float* attended) {
  const BatchSequence& sequence = *item.sequence;
  const absl::Span<const uint32_t> table = sequence.tables[kv.group];
  const uint64_t stride = uint64_t{heads} * kv.head_dim;
  const uint64_t offset = (sequence.first_row + item.first) * stride + uint64_t{item.head} * kv.head_dim;
  const uint64_t head_bytes = uint64_t{kv.block_tokens} * kv.head_dim * KvTypeBytes(kv.type);
  const std::byte* const keys = kv.planes.data + item.kv_head * head_bytes;
  return {.query = query + offset,
          .out = attended + offset,
          .row_stride = stride,
          .rows = item.rows,
          .heads = item.heads,
          .head_dim = kv.head_dim,
          .position = sequence.position + item.first,
          .window = kv.window_tokens,
          .scale = scale,
          .type = StoredTypeOf(kv.type),
          .keys = keys,
          .values = keys + kv.kv_heads * head_bytes,
          .block_stride = kv.plane_bytes,
          .table = table.data(),
          .table_size = static_cast<uint32_t>(table.size()),
          .block_tokens = kv.block_tokens};
}

StoredType StoredTypeOf(KvType type) {
  switch (type) {
    case KvType::kF32:
      return StoredType::kF32;
    case KvType::kF16:
      return StoredType::kF16;
    case KvType::kBF16:
      return StoredType::kBF16;
  }
  BATON_CHECK(false);
  return StoredType::kF32;
}

}  // namespace baton
