#ifndef BATON_TESTS_FUZZ_LAND_GEOMETRY_H_
#define BATON_TESTS_FUZZ_LAND_GEOMETRY_H_

#include "engine/kv/kv_geometry.h"

namespace baton {

// The pools of a fuzzed handoff, small on both sides: a group in full and one whose blocks roll.
inline KvGeometry LandGeometry() {
  return {KvType::kF16,
          8,
          {{.layers = {0, 1}, .kv_heads = 1, .head_dim = 16},
           {.layers = {2}, .kv_heads = 1, .head_dim = 8, .window_tokens = 11}}};
}

}  // namespace baton

#endif  // BATON_TESTS_FUZZ_LAND_GEOMETRY_H_
