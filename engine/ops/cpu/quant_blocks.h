#ifndef BATON_ENGINE_OPS_CPU_QUANT_BLOCKS_H_
#define BATON_ENGINE_OPS_CPU_QUANT_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "engine/model_file/tensor_type.h"

namespace baton {

// 32 consecutive elements of a quantised tensor: element i = d[i / 16] (q[i] - zero) + m. Nothing is rounded:
// d and m are products of few bits.
struct QuantBlock {
  uint8_t q[32];     // unsigned; of Q8_0 with 128 added
  uint8_t zero = 0;  // 0 where there is a minimum
  float d[2];        // equal except in Q6_K
  float m = 0;
};

// Reads block `index` (of 32 elements) of a row that begins at `row`.
QuantBlock ReadQuantBlock(TensorType type, const std::byte* row, uint64_t index);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_QUANT_BLOCKS_H_
