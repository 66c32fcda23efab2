#ifndef BATON_ENGINE_KV_RANGES_H_
#define BATON_ENGINE_KV_RANGES_H_

#include <cstdint>

namespace baton {

// Consecutive layers, half-open: of the model, or within one cache group where it says so.
struct LayerRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

// Consecutive tokens of one sequence, half-open, by their position.
struct TokenRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool contains(const TokenRange& other) const { return begin <= other.begin && other.end <= end; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

}  // namespace baton

#endif  // BATON_ENGINE_KV_RANGES_H_
