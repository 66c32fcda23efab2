#include "engine/model_file/tensor_type.h"

#include <array>

#include "common/check.h"

namespace baton {
namespace {

struct Row {
  TensorType type;
  TensorTypeTraits traits;
};

constexpr std::array<Row, 11> kRows = {{
    {TensorType::kF32, {"F32", 1, 4}},
    {TensorType::kF16, {"F16", 1, 2}},
    {TensorType::kBF16, {"BF16", 1, 2}},
    {TensorType::kQ4_0, {"Q4_0", 32, 18}},
    {TensorType::kQ4_1, {"Q4_1", 32, 20}},
    {TensorType::kQ5_0, {"Q5_0", 32, 22}},
    {TensorType::kQ5_1, {"Q5_1", 32, 24}},
    {TensorType::kQ8_0, {"Q8_0", 32, 34}},
    {TensorType::kQ4_K, {"Q4_K", 256, 144}},
    {TensorType::kQ5_K, {"Q5_K", 256, 176}},
    {TensorType::kQ6_K, {"Q6_K", 256, 210}},
}};

// Indexed by the number in the file; empty where ggml retired the number.
constexpr std::array<std::string_view, 40> kNames = {
    "F32",    "F16",   "Q4_0",  "Q4_1",   "",      "",      "Q5_0",    "Q5_1",   "Q8_0",    "Q8_1",
    "Q2_K",   "Q3_K",  "Q4_K",  "Q5_K",   "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
    "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",     "I64",    "F64",     "IQ1_M",
    "BF16",   "",      "",      "",       "TQ1_0", "TQ2_0", "",        "",       "",        "MXFP4",
};

}  // namespace

TensorTypeTraits TraitsOf(TensorType type) {
  for (const Row& row : kRows) {
    if (row.type == type) return row.traits;
  }
  BATON_CHECK(false && "a TensorType outside of its enumerators");
}

std::optional<TensorType> TensorTypeFromNumber(uint32_t number) {
  for (const Row& row : kRows) {
    if (static_cast<uint32_t>(row.type) == number) return row.type;
  }
  return std::nullopt;
}

std::string_view TensorTypeName(uint32_t number) {
  if (number >= kNames.size() || kNames[number].empty()) return "unknown";
  return kNames[number];
}

}  // namespace baton
