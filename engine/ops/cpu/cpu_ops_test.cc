// Every level of kernels against the reference, on sizes that are no multiples of anything.
#include "engine/ops/cpu/cpu_ops_test.h"

#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/cpu/kernel_levels.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

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
  for (uint32_t pair = 0; !gemma && pair < attention.rope.dims / 2; ++pair) {
    attention.rope.divisors.push_back(1.0f + 0.5f * static_cast<float>(pair));
  }
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

// Levels that this processor does not run are compiled and nothing more: say so.
TEST(KernelLevelsTest, LevelsAreChosenByName) {
  const auto supported = SupportedKernels();
  for (const KernelTable* kernels : supported) std::cout << kernels->name << " kernels: tested here\n";
  for (const KernelTable* kernels : UnsupportedKernels()) {
    std::cout << kernels->name << " kernels: NOT run, this processor lacks their instructions\n";
    EXPECT_EQ(ChooseKernels(kernels->name).status().code(), absl::StatusCode::kUnimplemented);
  }
  if (EmulatedAmxKernels() != nullptr) std::cout << EmulatedAmxKernels()->name << ": tested here\n";
  const std::vector<std::string> choices = KernelChoices();
  EXPECT_EQ(choices.size(), 2 + supported.size() + UnsupportedKernels().size());
  EXPECT_STREQ(supported.back()->name, "portable");
  EXPECT_EQ(*ChooseKernels("auto"), supported.front());
  for (const KernelTable* kernels : supported) EXPECT_EQ(*ChooseKernels(kernels->name), kernels);
  EXPECT_EQ(ChooseKernels("sse").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
