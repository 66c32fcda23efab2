#include "engine/model_file/dequantize.h"

#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/golden_reader.h"

namespace baton {
namespace {

TEST(DequantizeTest, GivesTheBitsThatGgmlGives) {
  const auto cases = golden::ReadDequantize("tests/golden/dequantize.bin");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_EQ(cases->size(), 10);
  for (const golden::DequantizeCase& expected : *cases) {
    const std::optional<TensorType> type = TensorTypeFromNumber(expected.type);
    ASSERT_TRUE(type.has_value()) << expected.type;
    const auto* const bytes = reinterpret_cast<const std::byte*>(expected.bytes.data());
    std::vector<float> values(expected.values.size());
    Dequantize(*type, absl::MakeConstSpan(bytes, expected.bytes.size()), absl::MakeSpan(values));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected.values[i]))
          << TraitsOf(*type).name << " " << i;
    }
  }
}

TEST(DequantizeTest, CopiesFloats) {
  const std::vector<float> in = {1.5f, -0.0f, 3e38f};
  std::vector<float> out(3);
  Dequantize(TensorType::kF32, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(in.data()), 12),
             absl::MakeSpan(out));
  EXPECT_EQ(out, in);
  EXPECT_TRUE(std::signbit(out[1]));
}

// The value of a half by its definition.
double HalfByDefinition(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(HalfTest, EveryHalfConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if ((half & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0);
      EXPECT_EQ(std::isinf(value), (half & 0x3ff) == 0);
      EXPECT_EQ(std::isnan(HalfToFloat(FloatToHalf(value))), std::isnan(value));
      EXPECT_TRUE(std::isnan(value) || FloatToHalf(value) == half);
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), HalfByDefinition(half)) << bits;
    ASSERT_EQ(FloatToHalf(value), half);
  }
}

TEST(HalfTest, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = HalfToFloat(static_cast<uint16_t>(bits));
    const float high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: a float has more bits
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(FloatToHalf(middle), even);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000);
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1e30f), 0x7c00);
}

}  // namespace
}  // namespace baton
