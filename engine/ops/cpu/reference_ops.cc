#include "engine/ops/cpu/reference_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/check.h"
#include "common/status_macros.h"
#include "engine/model_file/dequantize.h"
#include "engine/ops/cpu/kv_rows.h"
#include "engine/ops/cpu/thread_pool.h"

namespace baton {
namespace {

struct ReferenceMatrix final : Weight {
  std::vector<TensorView> parts;  // stacked by rows; their data stays mapped
  uint32_t rows = 0;
  uint32_t cols = 0;
};

struct ReferenceVector final : Weight {
  std::vector<float> values;
};

const ReferenceMatrix& Matrix(const Weight* weight) { return *static_cast<const ReferenceMatrix*>(weight); }
const std::vector<float>& Vector(const Weight* weight) {
  return static_cast<const ReferenceVector*>(weight)->values;
}

float* Floats(DeviceSpan span) { return reinterpret_cast<float*>(span.data); }

void ExpandRow(const TensorView& tensor, uint64_t row, float* out) {
  const uint64_t cols = tensor.dims[0];
  const TensorTypeTraits traits = TraitsOf(tensor.type);
  const uint64_t bytes = cols / traits.elements * traits.bytes;
  Dequantize(tensor.type, tensor.data.subspan(row * bytes, bytes), absl::MakeSpan(out, cols));
}

using Floats4 = float __attribute__((vector_size(16)));

Floats4 Load4(const float* from) {
  Floats4 value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// dots[row] = a . b[row] for kRows rows, `stride` apart: eight partial sums for each, the same whatever
// kRows.
template <uint32_t kRows>
void Dots(const float* a, const float* b, uint64_t stride, uint32_t n, float* dots) {
  Floats4 low[kRows] = {};
  Floats4 high[kRows] = {};
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Floats4 x0 = Load4(a + i);
    const Floats4 x1 = Load4(a + i + 4);
#pragma GCC unroll 4
    for (uint32_t row = 0; row < kRows; ++row) {
      low[row] += x0 * Load4(b + row * stride + i);
      high[row] += x1 * Load4(b + row * stride + i + 4);
    }
  }
  for (uint32_t row = 0; row < kRows; ++row) {
    const Floats4 sums = low[row] + high[row];
    dots[row] = sums[0] + sums[1] + sums[2] + sums[3];
    for (uint32_t rest = i; rest < n; ++rest) dots[row] += a[rest] * b[row * stride + rest];
  }
}

float Dot(const float* a, const float* b, uint32_t n) {
  float dot;
  Dots<1>(a, b, 0, n, &dot);
  return dot;
}

void RmsNorm(const float* in, const std::vector<float>& weight, float epsilon, float* out) {
  double squares = 0;
  for (size_t i = 0; i < weight.size(); ++i) squares += double{in[i]} * in[i];
  const float scale = 1.0f / std::sqrt(static_cast<float>(squares / weight.size()) + epsilon);
  for (size_t i = 0; i < weight.size(); ++i) out[i] = in[i] * scale * weight[i];
}

void ApplyRope(const Rope& rope, uint32_t position, float* head) {
  const uint32_t half = rope.dims / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const double divisor = rope.divisors.empty() ? 1 : rope.divisors[i];
    const double angle =
        double{rope.position_scale} * position * std::pow(double{rope.base}, -2.0 * i / rope.dims) / divisor;
    const float cos = static_cast<float>(std::cos(angle));
    const float sin = static_cast<float>(std::sin(angle));
    float& a = head[rope.interleaved ? 2 * i : i];
    float& b = head[rope.interleaved ? 2 * i + 1 : i + half];
    const float rotated = a * cos - b * sin;
    b = a * sin + b * cos;
    a = rotated;
  }
}

void StoreKv(KvType type, const float* from, uint32_t count, std::byte* to) {
  if (type == KvType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  auto* halves = reinterpret_cast<uint16_t*>(to);
  for (uint32_t i = 0; i < count; ++i) {
    if (type == KvType::kF16) {
      halves[i] = FloatToHalf(from[i]);
    } else {
      const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
      halves[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
  }
}

void LoadKv(KvType type, const std::byte* from, uint32_t count, float* to) {
  if (type == KvType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const auto* halves = reinterpret_cast<const uint16_t*>(from);
  for (uint32_t i = 0; i < count; ++i) {
    to[i] = type == KvType::kF16 ? HalfToFloat(halves[i]) : std::bit_cast<float>(uint32_t{halves[i]} << 16);
  }
}

float Activate(GateActivation activation, float x) {
  if (activation == GateActivation::kSilu) return x / (1.0f + std::exp(-x));
  constexpr float kSqrt2OverPi = 0.797884560802865f;
  return 0.5f * x * (1.0f + std::tanh(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
}

class ReferenceOps final : public Ops {
 public:
  ReferenceOps(Device* device, uint32_t threads) : device_(device), pool_(ThreadPool::Start(threads)) {}

  std::string recipe() const override { return "f32-reference-v1"; }
  uint64_t weight_bytes() const override { return weight_bytes_; }

  absl::StatusOr<std::unique_ptr<Weight>> LoadMatrix(absl::Span<const TensorView* const> tensors) override {
    auto matrix = std::make_unique<ReferenceMatrix>();
    for (const TensorView* tensor : tensors) {
      matrix->parts.push_back(*tensor);
      matrix->cols = static_cast<uint32_t>(tensor->dims[0]);
      matrix->rows += static_cast<uint32_t>(tensor->dims[1]);
      weight_bytes_ += tensor->data.size();
    }
    return matrix;
  }

  absl::StatusOr<std::unique_ptr<Weight>> LoadVector(const TensorView& tensor) override {
    auto vector = std::make_unique<ReferenceVector>();
    vector->values.resize(tensor.dims[0]);
    Dequantize(tensor.type, tensor.data, absl::MakeSpan(vector->values));
    weight_bytes_ += tensor.data.size();
    return vector;
  }

  absl::StatusOr<std::unique_ptr<Weight>> LoadTable(const TensorView& tensor) override {
    const TensorView* const only = &tensor;
    return LoadMatrix({&only, 1});
  }

  absl::Status Reserve(const OpsLimits& limits) override {
    rows_.resize(limits.rows);
    const uint64_t normed = std::max(limits.hidden, limits.feed_forward);
    const uint64_t wide = std::max({limits.qkv, 2 * limits.feed_forward, limits.hidden});
    ASSIGN_OR_RETURN(normed_, device_->Allocate(limits.rows * normed * sizeof(float)));
    ASSIGN_OR_RETURN(wide_, device_->Allocate(limits.rows * wide * sizeof(float)));
    return absl::OkStatus();
  }

  void BeginStep(const Batch& batch) override {
    BATON_CHECK(batch.rows() <= rows_.size());
    batch_ = &batch;
    for (const BatchSequence& sequence : batch.sequences) {
      for (uint32_t i = 0; i < sequence.rows; ++i) {
        rows_[sequence.first_row + i] = {&sequence, sequence.position + i};
      }
    }
  }

  void Embed(const Weight& table, float scale, DeviceSpan hidden) override {
    const ReferenceMatrix& matrix = Matrix(&table);
    for (uint32_t row = 0; row < batch_->rows(); ++row) {
      BATON_CHECK(batch_->tokens[row] < matrix.rows);
      float* const out = Floats(hidden) + uint64_t{row} * matrix.cols;
      ExpandRow(matrix.parts[0], batch_->tokens[row], out);
      for (uint32_t i = 0; i < matrix.cols; ++i) out[i] *= scale;
    }
  }

  void AttentionInput(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan hidden,
                      DeviceSpan query) override {
    const uint32_t query_dims = weights.heads * kv.head_dim;
    const uint32_t kv_dims = kv.kv_heads * kv.head_dim;
    const uint32_t stride = query_dims + 2 * kv_dims;
    NormRows(Floats(hidden), weights.norm, weights.norm_epsilon, batch_->rows());
    Multiply(weights.qkv, normed(), batch_->rows(), wide());
    ForRows([&](uint32_t row) {
      const uint32_t position = rows_[row].position;
      float* const q = wide() + uint64_t{row} * stride;
      for (uint32_t head = 0; head < weights.heads + kv.kv_heads; ++head) {
        float* const x = q + head * kv.head_dim;
        const Weight* const norm = head < weights.heads ? weights.q_norm : weights.k_norm;
        if (norm != nullptr) RmsNorm(x, Vector(norm), weights.norm_epsilon, x);
        ApplyRope(weights.rope, position, x);
      }
      std::copy_n(q, query_dims, Floats(query) + uint64_t{row} * query_dims);
      const KvRows cache(kv, rows_[row].sequence->tables[kv.group]);
      for (uint32_t head = 0; head < kv.kv_heads; ++head) {
        const float* const k = q + query_dims + head * kv.head_dim;
        StoreKv(kv.type, k, kv.head_dim, cache.Key(position, head));
        StoreKv(kv.type, k + kv_dims, kv.head_dim, cache.Value(position, head));
      }
    });
  }

  void Attention(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan query,
                 DeviceSpan attended) override {
    const uint32_t stride = weights.heads * kv.head_dim;
    ForRows([&](uint32_t row) {
      for (uint32_t head = 0; head < weights.heads; ++head) {
        const uint64_t offset = uint64_t{row} * stride + head * kv.head_dim;
        AttendOne(kv, row, head / (weights.heads / kv.kv_heads), weights.scale, Floats(query) + offset,
                  Floats(attended) + offset);
      }
    });
  }

  void AttentionOutput(const AttentionWeights& weights, DeviceSpan attended, DeviceSpan hidden) override {
    Multiply(weights.output, Floats(attended), batch_->rows(), wide());
    AddResidual(weights.output_norm, weights.norm_epsilon, Matrix(weights.output).rows, Floats(hidden));
  }

  void Mlp(const MlpWeights& weights, DeviceSpan hidden) override {
    const uint32_t feed_forward = Matrix(weights.down).cols;
    NormRows(Floats(hidden), weights.norm, weights.norm_epsilon, batch_->rows());
    Multiply(weights.gate_up, normed(), batch_->rows(), wide());
    ForRows([&](uint32_t row) {
      const float* const gate = wide() + uint64_t{row} * 2 * feed_forward;
      float* const out = normed() + uint64_t{row} * feed_forward;
      for (uint32_t i = 0; i < feed_forward; ++i) {
        out[i] = Activate(weights.activation, gate[i]) * gate[feed_forward + i];
      }
    });
    Multiply(weights.down, normed(), batch_->rows(), wide());
    AddResidual(weights.output_norm, weights.norm_epsilon, Matrix(weights.down).rows, Floats(hidden));
  }

  void Head(const HeadWeights& weights, absl::Span<const uint32_t> rows, DeviceSpan hidden,
            DeviceSpan logits) override {
    const std::vector<float>& norm = Vector(weights.norm);
    for (size_t i = 0; i < rows.size(); ++i) {
      RmsNorm(Floats(hidden) + rows[i] * norm.size(), norm, weights.norm_epsilon, normed() + i * norm.size());
    }
    Multiply(weights.head, normed(), static_cast<uint32_t>(rows.size()), Floats(logits));
  }

 private:
  struct Row {
    const BatchSequence* sequence = nullptr;
    uint32_t position = 0;
  };

  float* normed() const { return Floats(normed_.span()); }
  float* wide() const { return Floats(wide_.span()); }

  void ForRows(absl::FunctionRef<void(uint32_t row)> work) {
    pool_->For(batch_->rows(), 1, [&](WorkRange range, uint32_t) {
      for (uint32_t row = range.begin; row < range.end; ++row) work(row);
    });
  }

  void NormRows(const float* in, const Weight* norm, float epsilon, uint32_t rows) {
    const std::vector<float>& weight = Vector(norm);
    for (uint32_t row = 0; row < rows; ++row) {
      RmsNorm(in + row * weight.size(), weight, epsilon, normed() + row * weight.size());
    }
  }

  // out[row][r] = weight[r] . in[row]
  void Multiply(const Weight* weight, const float* in, uint32_t rows, float* out) {
    const ReferenceMatrix& matrix = Matrix(weight);
    uint32_t first = 0;  // row of the stack where the part begins
    for (const TensorView& part : matrix.parts) {
      pool_->For(static_cast<uint32_t>(part.dims[1]), 1, [&](WorkRange range, uint32_t) {
        std::vector<float> expanded(matrix.cols);
        for (uint32_t r = range.begin; r < range.end; ++r) {
          ExpandRow(part, r, expanded.data());
          MultiplyRow(expanded, in, rows, out + first + r, matrix.rows);
        }
      });
      first += static_cast<uint32_t>(part.dims[1]);
    }
  }

  // out[row * stride] = weight . in[row]
  static void MultiplyRow(const std::vector<float>& weight, const float* in, uint32_t rows, float* out,
                          uint64_t stride) {
    const uint32_t cols = static_cast<uint32_t>(weight.size());
    float dots[4];
    uint32_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      Dots<4>(weight.data(), in + uint64_t{row} * cols, cols, cols, dots);
      for (uint32_t i = 0; i < 4; ++i) out[(row + i) * stride] = dots[i];
    }
    for (; row < rows; ++row) out[row * stride] = Dot(weight.data(), in + uint64_t{row} * cols, cols);
  }

  // hidden += norm(wide_), or hidden += wide_ without a norm.
  void AddResidual(const Weight* norm, float epsilon, uint32_t cols, float* hidden) {
    ForRows([&](uint32_t row) {
      float* const x = wide() + uint64_t{row} * cols;
      if (norm != nullptr) RmsNorm(x, Vector(norm), epsilon, x);
      for (uint32_t i = 0; i < cols; ++i) hidden[uint64_t{row} * cols + i] += x[i];
    });
  }

  void AttendOne(const KvLayer& kv, uint32_t row, uint32_t kv_head, float scale, const float* query,
                 float* out) const {
    const uint32_t position = rows_[row].position;
    const uint32_t first = FirstVisible(kv, position);
    const KvRows cache(kv, rows_[row].sequence->tables[kv.group]);
    std::vector<float> expanded(kv.head_dim), weights(position - first + 1);
    for (uint32_t token = first; token <= position; ++token) {
      LoadKv(kv.type, cache.Key(token, kv_head), kv.head_dim, expanded.data());
      weights[token - first] = scale * Dot(query, expanded.data(), kv.head_dim);
    }
    const float highest = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (float& weight : weights) total += weight = std::exp(weight - highest);
    std::fill_n(out, kv.head_dim, 0.0f);
    for (uint32_t token = first; token <= position; ++token) {
      LoadKv(kv.type, cache.Value(token, kv_head), kv.head_dim, expanded.data());
      const float weight = weights[token - first] / static_cast<float>(total);
      for (uint32_t i = 0; i < kv.head_dim; ++i) out[i] += weight * expanded[i];
    }
  }

  Device* const device_;
  const std::unique_ptr<ThreadPool> pool_;
  uint64_t weight_bytes_ = 0;
  const Batch* batch_ = nullptr;
  std::vector<Row> rows_;  // [limit]
  DeviceBuffer normed_;    // [rows][columns of the next matrix], floats
  DeviceBuffer wide_;      // [rows][rows of the last matrix], floats
};

}  // namespace

std::unique_ptr<Ops> CreateReferenceOps(Device* device, uint32_t threads) {
  return std::make_unique<ReferenceOps>(device, threads);
}

}  // namespace baton
