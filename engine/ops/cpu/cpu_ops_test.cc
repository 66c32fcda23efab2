// Every level of kernels against the reference, on sizes that are no multiples of anything.
#include "engine/ops/cpu/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/model_file/dequantize.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "engine/ops/cpu/reference_ops.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"

namespace baton {
namespace {

// A tensor and its bytes.
struct OwnedTensor {
  std::vector<std::byte> bytes;
  TensorView view;
};

std::unique_ptr<OwnedTensor> MakeTensor(TensorType type, uint32_t rows, uint32_t columns, float deviation,
                                        uint32_t seed) {
  std::mt19937 random(seed);
  auto tensor = std::make_unique<OwnedTensor>();
  tensor->bytes = RandomTensor(type, uint64_t{rows} * columns, deviation, random);
  tensor->view = {.name = "random", .type = type, .dims = {columns, rows}, .data = tensor->bytes};
  return tensor;
}

std::unique_ptr<OwnedTensor> MakeVector(uint32_t size, uint32_t seed) {
  auto tensor = MakeTensor(TensorType::kF32, 1, size, 0.3f, seed);
  tensor->view.dims = {size};
  return tensor;
}

std::vector<float> Values(const OwnedTensor& tensor) {
  const TensorTypeTraits traits = TraitsOf(tensor.view.type);
  std::vector<float> values(tensor.bytes.size() / traits.bytes * traits.elements);
  Dequantize(tensor.view.type, tensor.bytes, absl::MakeSpan(values));
  return values;
}

std::vector<float> RandomRows(uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> rows(count);
  std::normal_distribution<float> normal;
  for (float& x : rows)
    x = normal(random) * (random() % 50 == 0 ? 8.0f : 1.0f);  // with outliers, as real ones have
  return rows;
}

DeviceSpan SpanOf(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)};
}

// The reference, then every level that this processor runs, at one and two threads.
std::vector<std::pair<std::string, std::unique_ptr<Ops>>> AllOps(Device* device) {
  std::vector<std::pair<std::string, std::unique_ptr<Ops>>> all;
  all.emplace_back("reference", CreateReferenceOps(device, 1));
  for (const KernelTable* kernels : SupportedKernels()) {
    all.emplace_back(kernels->name, CreateCpuOps(device, *kernels, 1));
    all.emplace_back(std::string(kernels->name) + " with 2 threads", CreateCpuOps(device, *kernels, 2));
  }
  return all;
}

Batch OneSequence(uint32_t rows, uint32_t position, absl::Span<const uint32_t> table) {
  Batch batch;
  batch.tokens.assign(rows, 0);
  batch.sequences.push_back({.first_row = 0, .rows = rows, .position = position, .tables = {table}});
  return batch;
}

class MatmulTest : public ::testing::TestWithParam<TensorType> {};

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest,
                         ::testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                           TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                                           TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K,
                                           TensorType::kQ5_K, TensorType::kQ6_K),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

// logits = norm(hidden) head: the error is that of rounding activations to int8 for each 32 columns, about
// half a step uniformly, and of float sums.
TEST_P(MatmulTest, IsAsNearToTheReferenceAsRoundedActivationsAllow) {
  const TensorTypeTraits traits = TraitsOf(GetParam());
  const bool floats = traits.elements == 1;
  auto device = CreateCpuDevice();
  struct Size {
    uint32_t rows, columns;
  };
  for (const Size size : {Size{1, floats ? 7 : traits.elements}, Size{37, floats ? 45 : traits.elements},
                          Size{50, 3 * traits.elements * (floats ? 17 : 1)}}) {
    const auto head = MakeTensor(GetParam(), size.rows, size.columns, 0.2f, 3);
    const auto norm = MakeVector(size.columns, 4);
    const std::vector<float> weights = Values(*head);
    for (const uint32_t count : {1u, 3u, 31u}) {
      std::vector<float> hidden = RandomRows(count * size.columns, count);
      const Batch batch = OneSequence(count, 0, {});
      std::vector<uint32_t> rows(count);
      for (uint32_t i = 0; i < count; ++i) rows[i] = count - 1 - i;
      std::vector<float> expected, first_level;
      for (auto& [name, ops] : AllOps(device.get())) {
        const TensorView* const parts[] = {&head->view};
        auto matrix = ops->LoadMatrix(parts);
        ASSERT_TRUE(matrix.ok()) << matrix.status();
        auto vector = *ops->LoadVector(norm->view);
        ASSERT_TRUE(ops->Reserve({.rows = count, .hidden = size.columns}).ok());
        ops->BeginStep(batch);
        std::vector<float> logits(count * size.rows, NAN);
        ops->Head({vector.get(), matrix->get(), 1e-6f}, rows, SpanOf(hidden), SpanOf(logits));
        if (name == "reference") {
          expected = logits;
          continue;
        }
        if (first_level.empty()) first_level = logits;
        ASSERT_EQ(logits, first_level) << name;  // the same bits at every level
        const std::vector<float> norm_values = Values(*norm);
        for (uint32_t i = 0; i < count; ++i) {
          std::vector<double> x(size.columns);
          double squares = 1e-6 * size.columns;
          for (uint32_t k = 0; k < size.columns; ++k)
            squares += std::pow(hidden[rows[i] * size.columns + k], 2);
          for (uint32_t k = 0; k < size.columns; ++k) {
            x[k] = hidden[rows[i] * size.columns + k] * norm_values[k] / std::sqrt(squares / size.columns);
          }
          for (uint32_t r = 0; r < size.rows; ++r) {
            double variance = 0, magnitude = 0;
            for (uint32_t k = 0; k < size.columns; ++k) {
              double step = 0;
              for (uint32_t j = k / 32 * 32; j < std::min(size.columns, k / 32 * 32 + 32); ++j) {
                step = std::max(step, std::fabs(x[j]) / 127);
              }
              const double w = weights[r * size.columns + k];
              if (!floats) variance += step * step / 12 * w * w;
              magnitude += std::fabs(w * x[k]);
            }
            ASSERT_NEAR(logits[i * size.rows + r], expected[i * size.rows + r],
                        6 * std::sqrt(variance) + 2e-6 * magnitude + 1e-6)
                << name << " row " << r << " of " << size.rows << " x " << size.columns;
          }
        }
      }
    }
  }
}

// The constants of a layer with float weights, so that only float rounding separates implementations.
struct LayerTensors {
  std::unique_ptr<OwnedTensor> norm, q, k, v, q_norm, k_norm, output, output_norm, gate, up, down;
};

LayerTensors MakeLayer(uint32_t hidden, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                       uint32_t feed_forward) {
  const auto matrix = [](uint32_t rows, uint32_t columns, uint32_t seed) {
    return MakeTensor(TensorType::kF32, rows, columns, 1.0f / std::sqrt(static_cast<float>(columns)), seed);
  };
  return {MakeVector(hidden, 1),
          matrix(heads * head_dim, hidden, 2),
          matrix(kv_heads * head_dim, hidden, 3),
          matrix(kv_heads * head_dim, hidden, 4),
          MakeVector(head_dim, 5),
          MakeVector(head_dim, 6),
          matrix(hidden, heads * head_dim, 7),
          MakeVector(hidden, 8),
          matrix(feed_forward, hidden, 9),
          matrix(feed_forward, hidden, 10),
          matrix(hidden, feed_forward, 11)};
}

struct LoadedLayer {
  std::vector<std::unique_ptr<Weight>> owned;
  AttentionWeights attention;
  MlpWeights mlp;
};

LoadedLayer LoadLayer(Ops& ops, const LayerTensors& tensors, bool gemma, uint32_t heads, uint32_t head_dim) {
  LoadedLayer layer;
  const auto keep = [&](absl::StatusOr<std::unique_ptr<Weight>> weight) {
    EXPECT_TRUE(weight.ok()) << weight.status();
    layer.owned.push_back(*std::move(weight));
    return layer.owned.back().get();
  };
  const auto matrix = [&](std::vector<const TensorView*> parts) { return keep(ops.LoadMatrix(parts)); };
  AttentionWeights& attention = layer.attention;
  attention.norm = keep(ops.LoadVector(tensors.norm->view));
  attention.qkv = matrix({&tensors.q->view, &tensors.k->view, &tensors.v->view});
  attention.output = matrix({&tensors.output->view});
  attention.heads = heads;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  attention.norm_epsilon = layer.mlp.norm_epsilon = 1e-5f;
  attention.rope = {
      .base = 10000, .position_scale = gemma ? 0.5f : 1.0f, .dims = head_dim / 4 * 2, .interleaved = !gemma};
  layer.mlp.norm = attention.norm;
  layer.mlp.gate_up = matrix({&tensors.gate->view, &tensors.up->view});
  layer.mlp.down = matrix({&tensors.down->view});
  if (gemma) {
    attention.q_norm = keep(ops.LoadVector(tensors.q_norm->view));
    attention.k_norm = keep(ops.LoadVector(tensors.k_norm->view));
    attention.output_norm = layer.mlp.output_norm = keep(ops.LoadVector(tensors.output_norm->view));
    layer.mlp.activation = GateActivation::kGeluTanh;
  }
  return layer;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << what << " [" << i << "]";
  }
}

struct LayerCase {
  bool gemma;
  uint32_t hidden, heads, kv_heads, head_dim, feed_forward, window, block_tokens;
};

class LayerTest : public ::testing::TestWithParam<LayerCase> {};

INSTANTIATE_TEST_SUITE_P(Sizes, LayerTest,
                         ::testing::Values(LayerCase{false, 20, 4, 2, 12, 44, 0, 4},
                                           LayerCase{false, 64, 6, 2, 32, 96, 0, 16},
                                           LayerCase{false, 33, 1, 1, 70, 17, 0, 64},
                                           LayerCase{true, 40, 3, 1, 20, 50, 11, 4},
                                           LayerCase{true, 48, 4, 4, 16, 31, 40, 8}));

// One layer over 90 tokens in uneven steps: through the pool and its rolling table, against the reference.
TEST_P(LayerTest, IsTheReferenceUpToRounding) {
  const LayerCase& c = GetParam();
  const LayerTensors tensors = MakeLayer(c.hidden, c.heads, c.kv_heads, c.head_dim, c.feed_forward);
  constexpr uint32_t kTokens = 90, kLongestStep = 40;
  const uint32_t slots =
      ((c.window == 0 ? kTokens : c.window + kLongestStep) + c.block_tokens - 1) / c.block_tokens + 1;
  std::vector<uint32_t> table(slots);
  std::iota(table.rbegin(), table.rend(), 0);
  const std::vector<float> input = RandomRows(kTokens * c.hidden, 5);

  auto device = CreateCpuDevice();
  std::vector<float> expected, first_level;
  for (auto& [name, ops] : AllOps(device.get())) {
    KvLayer kv = {.type = KvType::kF32,
                  .kv_heads = c.kv_heads,
                  .head_dim = c.head_dim,
                  .block_tokens = c.block_tokens,
                  .window_tokens = c.window};
    kv.plane_bytes = uint64_t{2} * c.kv_heads * c.block_tokens * c.head_dim * sizeof(float);
    // What no row may see is poisoned.
    std::vector<float> planes(slots * kv.plane_bytes / sizeof(float), NAN);
    kv.planes = SpanOf(planes);
    const LoadedLayer layer = LoadLayer(*ops, tensors, c.gemma, c.heads, c.head_dim);
    ASSERT_TRUE(ops->Reserve({.rows = kLongestStep,
                              .hidden = c.hidden,
                              .feed_forward = c.feed_forward,
                              .qkv = (c.heads + 2 * c.kv_heads) * c.head_dim})
                    .ok());
    std::vector<float> output;
    uint32_t position = 0;
    for (const uint32_t rows : {1u, kLongestStep, 13u, 2u, 34u}) {
      const Batch batch = OneSequence(rows, position, table);
      std::vector<float> hidden(input.begin() + position * c.hidden,
                                input.begin() + (position + rows) * c.hidden);
      std::vector<float> query(rows * c.heads * c.head_dim), attended(query.size());
      ops->BeginStep(batch);
      ops->AttentionInput(layer.attention, kv, SpanOf(hidden), SpanOf(query));
      ops->Attention(layer.attention, kv, SpanOf(query), SpanOf(attended));
      ops->AttentionOutput(layer.attention, SpanOf(attended), SpanOf(hidden));
      ops->Mlp(layer.mlp, SpanOf(hidden));
      output.insert(output.end(), hidden.begin(), hidden.end());
      position += rows;
    }
    ASSERT_EQ(position, kTokens);
    if (name == "reference") {
      expected = output;
      continue;
    }
    if (first_level.empty()) first_level = output;
    ASSERT_EQ(output, first_level) << name;
    ExpectNear(output, expected, name);
  }
}

TEST(CpuOpsTest, EmbeddingRowsAreScaled) {
  const auto table = MakeTensor(TensorType::kQ8_0, 9, 64, 0.5f, 1);
  const std::vector<float> values = Values(*table);
  auto device = CreateCpuDevice();
  for (auto& [name, ops] : AllOps(device.get())) {
    auto weight = *ops->LoadTable(table->view);
    ASSERT_TRUE(ops->Reserve({.rows = 2, .hidden = 64}).ok());
    Batch batch = OneSequence(2, 0, {});
    batch.tokens = {8, 0};
    ops->BeginStep(batch);
    std::vector<float> hidden(2 * 64);
    ops->Embed(*weight, 2.5f, SpanOf(hidden));
    for (uint32_t i = 0; i < 64; ++i) {
      ASSERT_EQ(hidden[i], values[8 * 64 + i] * 2.5f) << name;
      ASSERT_EQ(hidden[64 + i], values[i] * 2.5f) << name;
    }
  }
}

TEST(KernelLevelsTest, LevelsAreChosenByName) {
  const auto supported = SupportedKernels();
  EXPECT_STREQ(supported.back()->name, "portable");
  EXPECT_EQ(*ChooseKernels("auto"), supported.front());
  for (const KernelTable* kernels : supported) EXPECT_EQ(*ChooseKernels(kernels->name), kernels);
  EXPECT_EQ(ChooseKernels("sse").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
