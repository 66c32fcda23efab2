// Products of every format and level: near to the reference, and bit by bit what the recipe says.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/cpu/cpu_ops_test.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

class MatmulTest : public ::testing::TestWithParam<TensorType> {};

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest,
                         ::testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                           TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                                           TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K,
                                           TensorType::kQ5_K, TensorType::kQ6_K),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

enum class Rounding { kNone, kInt8, kInt8Twice, kBf16 };

// Bounds the error of multiplying `weights`, [rows][x.size()], by x: that of rounding x, half a step
// uniformly, and of float sums. Steps are those of int8 for each 32 columns, 1 / 254 of them where what the
// first rounding leaves is rounded again, or those of bfloat16.
class RoundingBound {
 public:
  RoundingBound(std::vector<double> x, Rounding rounding) : x_(std::move(x)), steps_(x_.size()) {
    for (size_t k = 0; k < x_.size(); ++k) {
      if (rounding == Rounding::kBf16) steps_[k] = std::fabs(x_[k]) / 128;
      if (rounding != Rounding::kInt8 && rounding != Rounding::kInt8Twice) continue;
      double largest = 0;
      for (size_t i = k / 32 * 32; i < std::min(x_.size(), k / 32 * 32 + 32); ++i) {
        largest = std::max(largest, std::fabs(x_[i]));
      }
      steps_[k] = largest / 127 / (rounding == Rounding::kInt8Twice ? 254 : 1);
    }
  }

  double Of(const float* weights) const {
    double variance = 0, magnitude = 0;
    for (size_t k = 0; k < x_.size(); ++k) {
      variance += std::pow(steps_[k] * weights[k], 2) / 12;
      magnitude += std::fabs(weights[k] * x_[k]);
    }
    return 6 * std::sqrt(variance) + 2e-6 * magnitude + 1e-6;
  }

 private:
  const std::vector<double> x_;
  std::vector<double> steps_;
};

std::vector<double> Normed(const float* x, const std::vector<float>& norm, double epsilon) {
  std::vector<double> normed(norm.size());
  double squares = epsilon * static_cast<double>(norm.size());
  for (size_t k = 0; k < norm.size(); ++k) squares += std::pow(x[k], 2);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(norm.size()));
  for (size_t k = 0; k < norm.size(); ++k) normed[k] = x[k] * norm[k] * scale;
  return normed;
}

// Both grains of activations, on sizes at and around tiles and panels: logits = norm(hidden) matrix, which
// rounds twice, and hidden = attended matrix, which rounds once.
TEST_P(MatmulTest, IsAsNearToTheReferenceAsRoundedActivationsAllow) {
  const TensorTypeTraits traits = TraitsOf(GetParam());
  const bool floats = traits.elements == 1;
  auto device = CreateCpuDevice();
  struct Size {
    uint32_t rows, columns;
  };
  for (const Size size : {Size{1, floats ? 7 : traits.elements}, Size{37, floats ? 45 : traits.elements},
                          Size{50, 3 * traits.elements * (floats ? 17 : 1)}}) {
    const auto tensor = MakeTensor(GetParam(), size.rows, size.columns, 0.2f, 3);
    const auto norm = MakeVector(size.columns, 4);
    const std::vector<float> weights = Values(*tensor);
    for (const uint32_t count : {1u, 2u, 3u, 5u, 8u, 11u, 12u, 13u, 31u, 64u, 65u}) {
      std::vector<float> input = RandomRows(count * size.columns, count);
      const Batch batch = OneSequence(count, 0, {});
      std::vector<uint32_t> rows(count);
      std::iota(rows.rbegin(), rows.rend(), 0);
      std::vector<float> expected[2];                                // by grain
      std::map<std::string, std::vector<float>> first_of_recipe[2];  // by grain
      for (auto& [name, ops] : AllOps(device.get())) {
        const TensorView* const parts[] = {&tensor->view};
        auto matrix = ops->LoadMatrix(parts);
        ASSERT_TRUE(matrix.ok()) << matrix.status();
        auto vector = *ops->LoadVector(norm->view);
        ASSERT_TRUE(ops->Reserve({.rows = count, .hidden = std::max(size.columns, size.rows)}).ok());
        ops->BeginStep(batch);
        std::vector<float> logits(count * size.rows, NAN);
        ops->Head({vector.get(), matrix->get(), 1e-6f}, rows, SpanOf(input), SpanOf(logits));
        AttentionWeights attention;
        attention.output = matrix->get();
        std::vector<float> hidden(count * size.rows, 0);
        ops->AttentionOutput(attention, SpanOf(input), SpanOf(hidden));
        const std::vector<float>* const outputs[2] = {&hidden, &logits};
        for (int grain = 0; grain < 2; ++grain) {
          if (name == "reference") {
            expected[grain] = *outputs[grain];
            continue;
          }
          const auto& first =
              first_of_recipe[grain].try_emplace(ops->recipe(), *outputs[grain]).first->second;
          ASSERT_EQ(*outputs[grain], first) << name;  // the same bits at every level of a recipe
        }
      }
      for (uint32_t i = 0; i < count; ++i) {
        const float* const once = input.data() + i * size.columns;
        const float* const twice = input.data() + rows[i] * size.columns;
        for (const auto& [recipe, output] : first_of_recipe[0]) {
          const bool bf16 = recipe.find("bf16") != std::string::npos;
          const auto rounding = [&](Rounding of_blocks) {
            return bf16 ? Rounding::kBf16 : floats ? Rounding::kNone : of_blocks;
          };
          const RoundingBound bounds[2] = {
              {std::vector<double>(once, once + size.columns), rounding(Rounding::kInt8)},
              {Normed(twice, Values(*norm), 1e-6), rounding(Rounding::kInt8Twice)}};
          for (uint32_t r = 0; r < size.rows; ++r) {
            for (int grain = 0; grain < 2; ++grain) {
              ASSERT_NEAR(first_of_recipe[grain].at(recipe)[i * size.rows + r],
                          expected[grain][i * size.rows + r],
                          bounds[grain].Of(weights.data() + r * size.columns))
                  << recipe << ", row " << r << " of " << size.rows << " x " << size.columns << ", grain "
                  << grain;
            }
          }
        }
      }
    }
  }
}

float FlushedToZero(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// To the 8 bits of bfloat16, ties to even.
float RoundedToBf16(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return FlushedToZero(std::ldexp(std::nearbyint(fraction * 256), exponent - 8));
}

// The dot of bfloat16 weights with `x`, word for word as Bf16Arithmetic says.
float DotAs(Bf16Arithmetic arithmetic, const float* weights, const float* x, uint32_t columns) {
  const auto multiply_add = [](float a, float b, float sum) { return FlushedToZero(std::fma(a, b, sum)); };
  float sum = 0;
  if (arithmetic == Bf16Arithmetic::kFloat) {
    for (uint32_t i = 0; i < columns; ++i) sum = std::fma(x[i], weights[i], sum);
    return sum;
  }
  std::vector<float> a((columns + 31) / 32 * 32), w(a.size());
  for (uint32_t i = 0; i < columns; ++i) a[i] = RoundedToBf16(x[i]), w[i] = FlushedToZero(weights[i]);
  if (arithmetic == Bf16Arithmetic::kPairs) {
    for (size_t i = 0; i < a.size(); i += 2) {
      sum = multiply_add(a[i], w[i], multiply_add(a[i + 1], w[i + 1], sum));
    }
    return sum;
  }
  for (size_t begin = 0; begin < a.size(); begin += 32) {
    float even = 0, odd = 0;
    for (size_t i = begin; i < begin + 32; i += 2) {
      even = multiply_add(a[i], w[i], even);
      odd = multiply_add(a[i + 1], w[i + 1], odd);
    }
    sum = FlushedToZero(sum + FlushedToZero(even + odd));
  }
  return sum;
}

// Every bit, for any number of rows beside it.
TEST(Bf16Test, IsTheArithmeticOfTheLevel) {
  auto device = CreateCpuDevice();
  for (const auto& [rows, columns] : {std::pair{1u, 2u}, {37u, 45u}, {16u, 64u}, {50u, 391u}}) {
    const auto tensor = MakeTensor(TensorType::kBF16, rows, columns, 0.2f, 3);
    const std::vector<float> weights = Values(*tensor);
    for (const KernelTable* kernels : AllKernels()) {
      for (const uint32_t threads : {1u, 2u}) {
        const auto ops = CreateCpuOps(device.get(), *kernels, {.threads = threads});
        const TensorView* const parts[] = {&tensor->view};
        const auto matrix = *ops->LoadMatrix(parts);
        AttentionWeights attention;
        attention.output = matrix.get();
        for (const uint32_t count : {1u, 2u, 7u, 16u, 17u, 33u, 65u}) {
          std::vector<float> input = RandomRows(count * columns, count);
          // One row around the least normal number.
          for (uint32_t i = 0; i < columns; ++i) input[(count / 2) * columns + i] *= 0x1p-125f;
          ASSERT_TRUE(ops->Reserve({.rows = count, .hidden = std::max(columns, rows)}).ok());
          const Batch batch = OneSequence(count, 0, {});
          ops->BeginStep(batch);
          std::vector<float> output(count * rows, 0);
          ops->AttentionOutput(attention, SpanOf(input), SpanOf(output));
          for (uint32_t i = 0; i < count * rows; ++i) {
            const float* const weight = weights.data() + i % rows * columns;
            ASSERT_EQ(output[i], DotAs(kernels->bf16, weight, input.data() + i / rows * columns, columns))
                << kernels->name << ", row " << i % rows << " of " << rows << " x " << columns << " by row "
                << i / rows << " of " << count;
          }
        }
      }
    }
  }
}

// Matrices of a stack are read in panels that suit all of them: the same bits as of each alone.
TEST(CpuOpsTest, AStackGivesWhatItsPartsGive) {
  constexpr uint32_t kRows = 40, kColumns = 96;
  auto device = CreateCpuDevice();
  std::vector<std::unique_ptr<OwnedTensor>> tensors;
  std::vector<const TensorView*> views;
  for (const TensorType type : {TensorType::kBF16, TensorType::kQ8_0, TensorType::kF16, TensorType::kQ4_1}) {
    tensors.push_back(MakeTensor(type, kRows, kColumns, 0.2f, 7));
    views.push_back(&tensors.back()->view);
  }
  for (const KernelTable* kernels : AllKernels()) {
    const auto ops = CreateCpuOps(device.get(), *kernels, {.threads = 2});
    for (const uint32_t count : {1u, 5u, 16u, 33u}) {
      std::vector<float> input = RandomRows(count * kColumns, count);
      const Batch batch = OneSequence(count, 0, {});
      ASSERT_TRUE(ops->Reserve({.rows = count, .hidden = kColumns}).ok());
      ops->BeginStep(batch);
      const auto multiply = [&](absl::Span<const TensorView* const> parts) {
        const auto matrix = *ops->LoadMatrix(parts);
        AttentionWeights attention;
        attention.output = matrix.get();
        std::vector<float> output(count * kRows * parts.size(), 0);
        ops->AttentionOutput(attention, SpanOf(input), SpanOf(output));
        return output;
      };
      for (size_t first = 0; first < views.size(); ++first) {
        const size_t size = std::min<size_t>(3, views.size() - first);
        const auto stack = absl::MakeConstSpan(views).subspan(first, size);
        const std::vector<float> together = multiply(stack);
        for (size_t part = 0; part < size; ++part) {
          const std::vector<float> alone = multiply(stack.subspan(part, 1));
          for (uint32_t i = 0; i < count * kRows; ++i) {
            ASSERT_EQ(together[i / kRows * kRows * size + part * kRows + i % kRows], alone[i])
                << kernels->name << ", part " << part << " of " << size << " from " << first << ", row "
                << i / kRows << " of " << count;
          }
        }
      }
    }
  }
}

// Equal recipes promise equal bits, so what a model does not have is not part of its recipe.
TEST(Bf16Test, RecipeNamesTheArithmeticOfAModelThatHasBf16) {
  auto device = CreateCpuDevice();
  const auto blocks = MakeTensor(TensorType::kQ4_1, 16, 32, 0.2f, 1);
  const auto bf16 = MakeTensor(TensorType::kBF16, 16, 32, 0.2f, 1);
  for (const KernelTable* kernels : AllKernels()) {
    const auto ops = CreateCpuOps(device.get(), *kernels, {.threads = 1});
    const auto load = [&](const OwnedTensor& tensor) {
      const TensorView* const parts[] = {&tensor.view};
      EXPECT_TRUE(ops->LoadMatrix(parts).ok());
      return ops->recipe();
    };
    EXPECT_EQ(load(*blocks), "q8x32-v3") << kernels->name;
    const std::map<Bf16Arithmetic, std::string> recipes = {{Bf16Arithmetic::kFloat, "q8x32-v3"},
                                                           {Bf16Arithmetic::kPairs, "q8x32-v3-bf16-pairs"},
                                                           {Bf16Arithmetic::kTiles, "q8x32-v3-bf16-tiles"}};
    EXPECT_EQ(load(*bf16), recipes.at(kernels->bf16)) << kernels->name;
    EXPECT_EQ(load(*blocks), recipes.at(kernels->bf16)) << kernels->name;
  }
}

}  // namespace
}  // namespace baton
