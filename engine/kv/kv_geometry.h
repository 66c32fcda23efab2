#ifndef BATON_ENGINE_KV_KV_GEOMETRY_H_
#define BATON_ENGINE_KV_KV_GEOMETRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/kv/ranges.h"

namespace baton {

enum class KvType : uint8_t { kF32, kF16, kBF16 };

uint32_t KvTypeBytes(KvType type);
const char* KvTypeName(KvType type);  // "f32", "f16", "bf16"

inline constexpr uint32_t kMaxBlockTokens = 4096;

// Layers that share one pool and one block table.
struct CacheGroup {
  std::vector<uint32_t> layers;  // of the model, ascending
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window_tokens = 0;  // a row attends to this many latest tokens, itself included; 0 = to all
};

// What a KV cache looks like. In memory a pool is [layer of the group][block][plane], and a plane (one layer
// of one block) is [K, V][kv_heads][block_tokens][head_dim]. A value type; everything below is a pure
// function of it, and all but Check expects a geometry that passes Check.
struct KvGeometry {
  KvType type = KvType::kF16;
  uint32_t block_tokens = 16;  // a power of two, at most kMaxBlockTokens
  std::vector<CacheGroup> groups;

  // INVALID_ARGUMENT unless block_tokens is a power of two, every group has layers, heads and a head_dim,
  // layers ascend and lie in one group only, and no product of these overflows.
  absl::Status Check() const;

  uint64_t plane_bytes(uint32_t group) const;
  uint64_t block_bytes(uint32_t group) const;  // over all layers of the group
  uint64_t token_bytes(uint32_t group) const;  // one token in one layer, K and V together

  // Blocks that a sequence of `tokens` needs in a group when one step appends at most `max_step_tokens`: a
  // rolling group never needs more than its window plus the longest step, rounded up by block (one more,
  // since neither end is aligned).
  uint32_t BlocksFor(uint32_t group, uint32_t tokens, uint32_t max_step_tokens) const;

  // The tokens whose KV a sequence still needs after `tokens` tokens: the last window - 1 of a sliding group,
  // all of a full one.
  TokenRange NeededAfter(uint32_t group, uint32_t tokens) const;

  // The layers of a group, counted within it, that are in `model_layers`.
  LayerRange LayersOf(uint32_t group, LayerRange model_layers) const;

  // Identity of everything but block_tokens, which may differ between two sides of a handoff. Readable, so
  // that two that differ explain themselves: "f16;layers=0-23,kv_heads=2,head_dim=64,window=0".
  std::string LayoutId() const;
};

}  // namespace baton

#endif  // BATON_ENGINE_KV_KV_GEOMETRY_H_
