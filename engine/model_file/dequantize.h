#ifndef BATON_ENGINE_MODEL_FILE_DEQUANTIZE_H_
#define BATON_ENGINE_MODEL_FILE_DEQUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/model_file/tensor_type.h"

namespace baton {

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);  // to nearest, ties to even

// Expands `bytes` (whole blocks of `type`) into `out`, whose size is the number of elements. The plain
// reference: the formulas of the ggml block formats, one multiply and one add per element, in float.
void Dequantize(TensorType type, absl::Span<const std::byte> bytes, absl::Span<float> out);

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_DEQUANTIZE_H_
