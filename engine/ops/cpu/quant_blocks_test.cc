#include "engine/ops/cpu/quant_blocks.h"

#include <random>
#include <vector>

#include "engine/model_file/dequantize.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"

namespace baton {
namespace {

class QuantBlocksTest : public ::testing::TestWithParam<TensorType> {};

INSTANTIATE_TEST_SUITE_P(Types, QuantBlocksTest,
                         ::testing::Values(TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                                           TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K,
                                           TensorType::kQ5_K, TensorType::kQ6_K),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

TEST_P(QuantBlocksTest, HoldsTheValuesExactly) {
  constexpr uint32_t kElements = 1024;
  std::mt19937 random(1);
  const std::vector<std::byte> bytes = RandomTensor(GetParam(), kElements, 0.1f, random);
  std::vector<float> expected(kElements);
  Dequantize(GetParam(), bytes, absl::MakeSpan(expected));
  for (uint32_t index = 0; index < kElements / 32; ++index) {
    const QuantBlock block = ReadQuantBlock(GetParam(), bytes.data(), index);
    for (uint32_t i = 0; i < 32; ++i) {
      const float value = block.d[i / 16] * static_cast<float>(block.q[i] - block.zero) + block.m;
      ASSERT_EQ(value, expected[index * 32 + i]) << "element " << index * 32 + i;
    }
  }
}

}  // namespace
}  // namespace baton
