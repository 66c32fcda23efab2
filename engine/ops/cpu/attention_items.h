#ifndef BATON_ENGINE_OPS_CPU_ATTENTION_ITEMS_H_
#define BATON_ENGINE_OPS_CPU_ATTENTION_ITEMS_H_

#include <cstdint>
#include <vector>

#include "engine/ops/batch.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/ops.h"

namespace baton {

// A part of the attention of a step that one thread computes: some rows of one sequence and some of the query
// heads that share a KV head. How a step is cut changes no bits.
struct AttentionItem {
  const BatchSequence* sequence = nullptr;
  uint32_t first = 0;  // row within the sequence's rows
  uint32_t rows = 0;
  uint32_t kv_head = 0;
  uint32_t head = 0;  // first query head
  uint32_t heads = 0;
};

// All of a step's attention, those that take longest first, in enough items for `threads`.
std::vector<AttentionItem> CutAttention(const Batch& batch, uint32_t heads, uint32_t kv_heads,
                                        uint32_t threads);

// Floats of scratch that any item of these sizes needs.
uint64_t AttentionScratchFloats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim);

// The kernel's arguments for an item, but for its scratch. `query` and `attended` are the step's.
AttentionArgs ArgsFor(const AttentionItem& item, const KvLayer& kv, uint32_t heads, float scale,
                      const float* query, float* attended);

StoredType StoredTypeOf(KvType type);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_ATTENTION_ITEMS_H_
