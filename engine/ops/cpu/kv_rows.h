#ifndef BATON_ENGINE_OPS_CPU_KV_ROWS_H_
#define BATON_ENGINE_OPS_CPU_KV_ROWS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/check.h"
#include "engine/ops/ops.h"

namespace baton {

// Finds the K and V rows of one sequence in one layer of a paged pool on the host.
class KvRows {
 public:
  KvRows(const KvLayer& layer, absl::Span<const uint32_t> table)
      : layer_(layer),
        table_(table),
        row_bytes_(uint64_t{layer.head_dim} * KvTypeBytes(layer.type)),
        head_bytes_(row_bytes_ * layer.block_tokens) {
    BATON_CHECK(!table.empty());
  }

  std::byte* Key(uint32_t token, uint32_t kv_head) const { return Row(token, kv_head); }
  std::byte* Value(uint32_t token, uint32_t kv_head) const {
    return Row(token, kv_head) + head_bytes_ * layer_.kv_heads;
  }

 private:
  std::byte* Row(uint32_t token, uint32_t kv_head) const {
    const uint32_t block = table_[token / layer_.block_tokens % table_.size()];
    const uint64_t offset = block * layer_.plane_bytes;
    BATON_CHECK(offset + layer_.plane_bytes <= layer_.planes.bytes);
    return layer_.planes.data + offset + kv_head * head_bytes_ + token % layer_.block_tokens * row_bytes_;
  }

  const KvLayer& layer_;
  const absl::Span<const uint32_t> table_;
  const uint64_t row_bytes_;
  const uint64_t head_bytes_;
};

// The first token that a row at `position` sees.
inline uint32_t FirstVisible(const KvLayer& layer, uint32_t position) {
  return layer.window_tokens == 0 || position < layer.window_tokens ? 0 : position - layer.window_tokens + 1;
}

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_KV_ROWS_H_
