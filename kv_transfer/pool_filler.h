#ifndef BATON_KV_TRANSFER_POOL_FILLER_H_
#define BATON_KV_TRANSFER_POOL_FILLER_H_

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "engine/kv/kv_pools.h"
#include "engine/kv/ranges.h"

namespace baton {

// For tests: writes and reads single elements of a sequence's KV straight by the definition of a pool's
// layout, so that what a transfer moved can be checked without the code that moved it. CPU devices only.
class PoolFiller {
 public:
  PoolFiller(const KvPools* pools, const SequenceKv* kv) : pools_(pools), kv_(kv) {}

  // Every element of these tokens gets a value of its own, never zero.
  void Fill(uint32_t group, TokenRange tokens, uint32_t seed) {
    ForEach(group, tokens, [&](std::byte* element, uint32_t width, uint64_t cell) {
      const uint64_t value = Value(seed, cell);
      std::memcpy(element, &value, width);
    });
  }
  // Elements of these tokens that do not hold what Fill wrote on another worker.
  uint64_t Differing(uint32_t group, TokenRange tokens, uint32_t seed) const {
    uint64_t differing = 0;
    ForEach(group, tokens, [&](std::byte* element, uint32_t width, uint64_t cell) {
      const uint64_t value = Value(seed, cell);
      differing += std::memcmp(element, &value, width) != 0;
    });
    return differing;
  }
  // Elements of these tokens that are not zero.
  uint64_t NonZero(uint32_t group, TokenRange tokens) const {
    uint64_t count = 0;
    ForEach(group, tokens, [&](std::byte* element, uint32_t width, uint64_t) {
      const uint64_t zero = 0;
      count += std::memcmp(element, &zero, width) != 0;
    });
    return count;
  }

 private:
  // Distinct over 65535 neighbours, in the two bytes that every element type has.
  static uint64_t Value(uint32_t seed, uint64_t cell) { return 1 + (cell * 40503 + seed) % 65535; }

  template <typename Visit>
  void ForEach(uint32_t group, TokenRange tokens, Visit visit) const {
    const KvGeometry& geometry = pools_->geometry();
    const CacheGroup& shape = geometry.groups[group];
    const uint32_t width = KvTypeBytes(geometry.type);
    const absl::Span<const uint32_t> table = kv_->table(group);
    for (uint32_t layer = 0; layer < shape.layers.size(); ++layer) {
      for (uint32_t token = tokens.begin; token < tokens.end; ++token) {
        const uint32_t block = table[token / geometry.block_tokens % table.size()];
        std::byte* plane = pools_->pool(group).plane(layer, block).data;
        for (uint32_t row = 0; row < 2 * shape.kv_heads; ++row) {
          for (uint32_t d = 0; d < shape.head_dim; ++d) {
            const uint64_t index =
                (uint64_t{row} * geometry.block_tokens + token % geometry.block_tokens) * shape.head_dim + d;
            const uint64_t cell =
                ((uint64_t{layer} * 1000003 + token) * 2 * shape.kv_heads + row) * shape.head_dim + d;
            visit(plane + index * width, width, cell);
          }
        }
      }
    }
  }

  const KvPools* const pools_;
  const SequenceKv* const kv_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_POOL_FILLER_H_
