#ifndef BATON_ENGINE_MODEL_FILE_TENSOR_TYPE_H_
#define BATON_ENGINE_MODEL_FILE_TENSOR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton {

// Element types of a tensor, numbered as GGUF numbers them (ggml's `enum ggml_type`).
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

// How a type packs its elements: `elements` values share `bytes` bytes (F32: 1 in 4; Q4_1: 32 in 20; Q6_K:
// 256 in 210).
struct TensorTypeTraits {
  std::string_view name;
  uint32_t elements = 0;
  uint32_t bytes = 0;
};

TensorTypeTraits TraitsOf(TensorType type);

// The type with this number in a file; nullopt when Baton does not read it.
std::optional<TensorType> TensorTypeFromNumber(uint32_t number);

// What ggml calls the type with this number ("IQ2_XXS"), for error texts; "unknown" for a number that it
// never used.
std::string_view TensorTypeName(uint32_t number);

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_TENSOR_TYPE_H_
