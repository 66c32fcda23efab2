#include "engine/ops/cpu/attention_items.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace baton {
namespace {

constexpr uint32_t kItemRows = 32;
constexpr uint32_t kItemQueries = 96;  // rows * heads, unless one row has more

uint32_t WidthOf(uint32_t head_dim) { return (head_dim + 31) / 32 * 32; }
uint64_t StateFloats(uint32_t head_dim) { return uint64_t{WidthOf(head_dim)} + 16; }

// Cuts `item`, which sees all its keys, at the segments of these; one that has a single segment stays whole.
void CutSegments(const AttentionItem& item, const KvLayer& kv, AttentionPlan& plan) {
  const uint32_t position = item.sequence->position + item.first;
  const uint32_t first = kv.window_tokens == 0 || position < kv.window_tokens
                             ? 0
                             : (position - kv.window_tokens + 1) / kAttentionSegment;
  const uint32_t end = (position + item.rows - 1) / kAttentionSegment + 1;
  if (end - first <= 1) {
    plan.items.push_back(item);
    return;
  }
  AttentionMerge merge{item, end - first};
  merge.item.partial = plan.partial_floats;
  for (uint32_t segment = first; segment < end; ++segment) {
    AttentionItem& part = plan.items.emplace_back(item);
    part.begin = segment * kAttentionSegment;
    part.end = part.begin + kAttentionSegment;
    part.partial = plan.partial_floats;
    plan.partial_floats += uint64_t{item.rows} * item.heads * StateFloats(kv.head_dim);
  }
  plan.merges.push_back(merge);
}

// Items of whole KV heads by rows; the last rows of a sequence see most, and come first.
std::vector<AttentionItem> CutRows(const Batch& batch, uint32_t kv_heads, uint32_t per_kv) {
  const uint32_t item_rows = std::clamp(kItemQueries / per_kv, 1u, kItemRows);
  std::vector<AttentionItem> items;
  for (const BatchSequence& sequence : batch.sequences) {
    for (uint32_t end = sequence.rows; end > 0;) {
      const uint32_t first = (end - 1) / item_rows * item_rows;
      for (uint32_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
        AttentionItem& item = items.emplace_back();
        item.sequence = &sequence;
        item.first = first;
        item.rows = end - first;
        item.kv_head = kv_head;
        item.head = kv_head * per_kv;
        item.heads = per_kv;
      }
      end = first;
    }
  }
  return items;
}

std::vector<AttentionItem> CutHeads(const std::vector<AttentionItem>& whole, uint32_t threads) {
  std::vector<AttentionItem> items;
  for (const AttentionItem& item : whole) {
    const uint32_t heads = std::max(1u, item.heads / threads);
    for (uint32_t head = 0; head < item.heads; head += heads) {
      AttentionItem& part = items.emplace_back(item);
      part.head = item.head + head;
      part.heads = std::min(heads, item.heads - head);
    }
  }
  return items;
}

}  // namespace

AttentionPlan CutAttention(const Batch& batch, const KvLayer& kv, uint32_t heads, uint32_t threads) {
  AttentionPlan plan;
  std::vector<AttentionItem> whole = CutRows(batch, kv.kv_heads, heads / kv.kv_heads);
  if (threads == 1 || whole.size() >= 4 * threads) {
    plan.items = std::move(whole);
    return plan;
  }
  for (const AttentionItem& item : whole) CutSegments(item, kv, plan);
  if (plan.merges.empty() && whole.size() < 2 * threads) plan.items = CutHeads(whole, threads);
  return plan;
}

uint64_t AttentionScratchFloats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim) {
  const uint64_t width = WidthOf(head_dim);
  const uint64_t most = std::max(kItemQueries, heads / kv_heads);
  const uint64_t queries = (most + kMostQueryGroup - 1) / kMostQueryGroup * kMostQueryGroup;
  return (kKeyTile + kAttentionSegment) * width +
         queries * (width + kAttentionSegment + 16 + 2 * StateFloats(head_dim));
}

AttentionArgs ArgsFor(const AttentionItem& item, const KvLayer& kv, uint32_t heads, float scale,
                      const float* query, float* attended, float* partials) {
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
          .width = WidthOf(kv.head_dim),
          .position = sequence.position + item.first,
          .window = kv.window_tokens,
          .scale = scale,
          .type = StoredTypeOf(kv.type),
          .keys = keys,
          .values = keys + kv.kv_heads * head_bytes,
          .block_stride = kv.plane_bytes,
          .table = table.data(),
          .table_size = static_cast<uint32_t>(table.size()),
          .block_tokens = kv.block_tokens,
          .begin = item.begin,
          .end = item.end,
          .partial = item.partial ? partials + *item.partial : nullptr};
}

MergeArgs ArgsFor(const AttentionMerge& merge, const KvLayer& kv, uint32_t heads, float* attended,
                  float* partials) {
  const AttentionItem& item = merge.item;
  const uint64_t stride = uint64_t{heads} * kv.head_dim;
  return {
      .partials = partials + *item.partial,
      .segments = merge.segments,
      .rows = item.rows,
      .heads = item.heads,
      .head_dim = kv.head_dim,
      .width = WidthOf(kv.head_dim),
      .out = attended + (item.sequence->first_row + item.first) * stride + uint64_t{item.head} * kv.head_dim,
      .row_stride = stride};
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
