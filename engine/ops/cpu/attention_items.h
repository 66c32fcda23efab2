#ifndef BATON_ENGINE_OPS_CPU_ATTENTION_ITEMS_H_
#define BATON_ENGINE_OPS_CPU_ATTENTION_ITEMS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ops/batch.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/ops.h"

namespace baton {

// A part of the attention of a step that one thread computes: some rows of one sequence and some of the query
// heads that share a KV head, over all keys that they see or over one segment of these. How a step is cut
// changes no bits.
struct AttentionItem {
  const BatchSequence* sequence = nullptr;
  uint32_t first = 0;  // row within the sequence's rows
  uint32_t rows = 0;
  uint32_t kv_head = 0;
  uint32_t head = 0;  // first query head
  uint32_t heads = 0;
  uint32_t begin = 0;               // keys, by position
  uint32_t end = UINT32_MAX;        // likewise
  std::optional<uint64_t> partial;  // where its states go, in floats; none: it writes the output
};

// The segments of an item, whose states follow each other from its `partial` on.
struct AttentionMerge {
  AttentionItem item;
  uint32_t segments = 0;
};

struct AttentionPlan {
  std::vector<AttentionItem> items;    // those that take longest first
  std::vector<AttentionMerge> merges;  // once all items are done
  uint64_t partial_floats = 0;
};

// All of a step's attention in enough items for `threads`: by rows and KV heads, and where these are few,
// long contexts by their segments, short ones by query heads.
AttentionPlan CutAttention(const Batch& batch, const KvLayer& kv, uint32_t heads, uint32_t threads);

// Floats of scratch that any item of these sizes needs.
uint64_t AttentionScratchFloats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim);

// The kernel's arguments for an item, but for its scratch. `query` and `attended` are the step's.
AttentionArgs ArgsFor(const AttentionItem& item, const KvLayer& kv, uint32_t heads, float scale,
                      const float* query, float* attended, float* partials);
MergeArgs ArgsFor(const AttentionMerge& merge, const KvLayer& kv, uint32_t heads, float* attended,
                  float* partials);

StoredType StoredTypeOf(KvType type);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_ATTENTION_ITEMS_H_
