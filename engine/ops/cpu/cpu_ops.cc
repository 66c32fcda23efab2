#include "engine/ops/cpu/cpu_ops.h"

#include <algorithm>
#include <vector>

#include "common/check.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/model_file/dequantize.h"
#include "engine/ops/cpu/activations.h"
#include "engine/ops/cpu/attention_items.h"
#include "engine/ops/cpu/kv_rows.h"
#include "engine/ops/cpu/packed_weight.h"
#include "engine/ops/cpu/rope_tables.h"
#include "engine/ops/cpu/thread_pool.h"
#include "engine/ops/cpu/weight_arena.h"

namespace baton {
namespace {

// Less is done by the caller alone.
constexpr uint32_t kMatmulGrain = 4;  // tiles
constexpr uint32_t kRowGrain = 4;
constexpr uint32_t kHeadGrain = 48;
constexpr uint32_t kMergeGrain = 8;

struct VectorWeight final : Weight {
  std::vector<float> values;
};

struct TableWeight final : Weight {
  const TensorView* tensor = nullptr;
};

const PackedWeight& Packed(const Weight* weight) { return *static_cast<const PackedWeight*>(weight); }
const std::vector<float>& Vector(const Weight* weight) {
  return static_cast<const VectorWeight*>(weight)->values;
}
float* Floats(DeviceSpan span) { return reinterpret_cast<float*>(span.data); }

struct alignas(64) CacheLine {
  float floats[16];
};

class CpuOps final : public Ops {
 public:
  CpuOps(Device* device, const KernelTable& kernels, const CpuOpsOptions& options)
      : device_(device),
        kernels_(kernels),
        pool_(ThreadPool::Start(options.threads, options.cores)),
        arena_(device, options.weight_limit_bytes),
        scratch_(options.threads) {}

  std::string recipe() const override;
  uint64_t weight_bytes() const override { return arena_.bytes(); }

  absl::StatusOr<std::unique_ptr<Weight>> LoadMatrix(absl::Span<const TensorView* const> tensors) override;
  absl::StatusOr<std::unique_ptr<Weight>> LoadVector(const TensorView& tensor) override;
  absl::StatusOr<std::unique_ptr<Weight>> LoadTable(const TensorView& tensor) override;
  absl::Status Reserve(const OpsLimits& limits) override;

  void BeginStep(const Batch& batch) override;
  void Embed(const Weight& table, float scale, DeviceSpan hidden) override;
  void AttentionInput(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan hidden,
                      DeviceSpan query) override;
  void Attention(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan query,
                 DeviceSpan attended) override;
  void AttentionOutput(const AttentionWeights& weights, DeviceSpan attended, DeviceSpan hidden) override;
  void Mlp(const MlpWeights& weights, DeviceSpan hidden) override;
  void Head(const HeadWeights& weights, absl::Span<const uint32_t> rows, DeviceSpan hidden,
            DeviceSpan logits) override;

 private:
  float* wide() const { return Floats(wide_.span()); }
  // Of one thread, until it asks again.
  float* Scratch(uint32_t thread, uint64_t floats) {
    std::vector<CacheLine>& scratch = scratch_[thread];
    scratch.resize(std::max<size_t>(scratch.size(), (floats + 15) / 16));
    return scratch.data()->floats;
  }

  struct Row {
    const BatchSequence* sequence = nullptr;
    uint32_t position = 0;
  };

  using Grain = Activations::Grain;

  // Shapes the activations for `matrix`: fill(row, to) writes each of `rows` rows, which is then rounded as
  // the matrix reads it.
  template <typename Fill>
  void FillRows(const PackedWeight& matrix, uint32_t rows, Grain grain, Fill fill);
  // The same with norm(from[row]).
  void FillNormed(const PackedWeight& matrix, uint32_t rows, Grain grain, const Weight* norm, float epsilon,
                  const float* from);
  // out[row] (+)= matrix activations[row]
  void Multiply(const PackedWeight& matrix, float* out, bool accumulate);
  // hidden += norm(matrix activations)
  void AddProjected(const PackedWeight& matrix, const Weight* norm, float epsilon, float* hidden);
  const RopeTable& RopeOfStep(const Rope& rope);
  void FinishHead(const AttentionWeights& weights, const KvLayer& kv, const RopeTable& rope, uint32_t row,
                  uint32_t head, float* query);

  Device* const device_;
  const KernelTable& kernels_;
  const std::unique_ptr<ThreadPool> pool_;
  WeightArena arena_;
  RopeTables ropes_;
  bool has_bf16_ = false;  // some matrix has

  const Batch* batch_ = nullptr;
  uint64_t step_ = 0;
  std::vector<Row> rows_;
  Activations activations_;
  DeviceBuffer wide_;                            // [rows][rows of the matrix before], floats
  std::vector<std::vector<CacheLine>> scratch_;  // [threads]
  std::vector<CacheLine> partials_;              // states of segments of a split attention
};

std::string CpuOps::recipe() const {
  constexpr char kBlocks[] = "q8x32-v3";
  if (has_bf16_ && kernels_.bf16 == Bf16Arithmetic::kPairs) return StrCat(kBlocks, "-bf16-pairs");
  if (has_bf16_ && kernels_.bf16 == Bf16Arithmetic::kTiles) return StrCat(kBlocks, "-bf16-tiles");
  return kBlocks;
}

absl::StatusOr<std::unique_ptr<Weight>> CpuOps::LoadMatrix(absl::Span<const TensorView* const> tensors) {
  ASSIGN_OR_RETURN(std::unique_ptr<PackedWeight> weight, PackedWeight::Load(tensors, *pool_, arena_));
  has_bf16_ = has_bf16_ || weight->has_bf16();
  return weight;
}

absl::StatusOr<std::unique_ptr<Weight>> CpuOps::LoadVector(const TensorView& tensor) {
  auto vector = std::make_unique<VectorWeight>();
  vector->values.resize(tensor.dims[0]);
  Dequantize(tensor.type, tensor.data, absl::MakeSpan(vector->values));
  return vector;
}

absl::StatusOr<std::unique_ptr<Weight>> CpuOps::LoadTable(const TensorView& tensor) {
  auto table = std::make_unique<TableWeight>();
  table->tensor = &tensor;
  return table;
}

absl::Status CpuOps::Reserve(const OpsLimits& limits) {
  rows_.resize(limits.rows);
  const uint64_t wide = std::max({limits.qkv, 2 * limits.feed_forward, limits.hidden});
  ASSIGN_OR_RETURN(wide_, device_->Allocate(limits.rows * wide * sizeof(float)));
  return activations_.Reserve(device_, limits.rows,
                              std::max({limits.hidden, limits.feed_forward, limits.qkv}));
}

void CpuOps::BeginStep(const Batch& batch) {
  BATON_CHECK(batch.rows() <= rows_.size());
  pool_->AdoptCaller();
  batch_ = &batch;
  ++step_;
  for (const BatchSequence& sequence : batch.sequences) {
    for (uint32_t i = 0; i < sequence.rows; ++i) {
      rows_[sequence.first_row + i] = {&sequence, sequence.position + i};
    }
  }
}

void CpuOps::Embed(const Weight& table, float scale, DeviceSpan hidden) {
  const TensorView& tensor = *static_cast<const TableWeight&>(table).tensor;
  const uint64_t columns = tensor.dims[0];
  const uint64_t row_bytes = tensor.data.size() / tensor.dims[1];
  for (uint32_t row = 0; row < batch_->rows(); ++row) {
    const TokenId token = batch_->tokens[row];
    BATON_CHECK(token < tensor.dims[1]);
    float* const out = Floats(hidden) + row * columns;
    Dequantize(tensor.type, tensor.data.subspan(token * row_bytes, row_bytes), absl::MakeSpan(out, columns));
    for (uint64_t i = 0; i < columns; ++i) out[i] *= scale;
  }
}

template <typename Fill>
void CpuOps::FillRows(const PackedWeight& matrix, uint32_t rows, Grain grain, Fill fill) {
  const bool rounded = matrix.has_bf16() && kernels_.bf16 != Bf16Arithmetic::kFloat;
  const bool floats = matrix.has_floats() || (matrix.has_bf16() && !rounded);
  const uint32_t panel_rows = floats ? std::min(kernels_.panel_rows, kMaxPanelRows) : kernels_.panel_rows;
  if (floats || rounded) grain = Grain::kCoarse;
  activations_.Shape(rows, matrix.columns(), panel_rows, grain);
  pool_->For(static_cast<uint32_t>(activations_.panels().size()), 1, [&](WorkRange range, uint32_t) {
    for (uint32_t panel = range.begin; panel < range.end; ++panel) {
      const ActivationPanel& p = activations_.panels()[panel];
      for (uint32_t row = p.first_row; row < p.first_row + Activations::RowsOf(p); ++row)
        fill(row, activations_.row(row));
      if (matrix.has_blocks()) activations_.Quantize(kernels_, panel);
      if (rounded) activations_.RoundToBf16(kernels_, panel);
    }
  });
}

void CpuOps::FillNormed(const PackedWeight& matrix, uint32_t rows, Grain grain, const Weight* norm,
                        float epsilon, const float* from) {
  const float* const weight = Vector(norm).data();
  const uint32_t columns = matrix.columns();
  FillRows(matrix, rows, grain, [&](uint32_t row, float* to) {
    kernels_.rms_norm(from + uint64_t{row} * columns, weight, epsilon, columns, to);
  });
}

void CpuOps::Multiply(const PackedWeight& matrix, float* out, bool accumulate) {
  const uint64_t unpacked_floats = uint64_t{matrix.columns()} * kUnpackedBytes / sizeof(float);
  pool_->For(matrix.tiles(), kMatmulGrain, [&](WorkRange tiles, uint32_t thread) {
    std::byte* const unpacked = reinterpret_cast<std::byte*>(Scratch(thread, unpacked_floats));
    matrix.Multiply(kernels_, tiles, activations_, unpacked, out, accumulate);
  });
}

void CpuOps::AddProjected(const PackedWeight& matrix, const Weight* norm, float epsilon, float* hidden) {
  if (norm == nullptr) {
    Multiply(matrix, hidden, true);
    return;
  }
  Multiply(matrix, wide(), false);
  const float* const weight = Vector(norm).data();
  const uint32_t columns = matrix.rows();
  pool_->For(batch_->rows(), kRowGrain, [&](WorkRange range, uint32_t) {
    for (uint32_t row = range.begin; row < range.end; ++row) {
      float* const x = wide() + uint64_t{row} * columns;
      kernels_.rms_norm(x, weight, epsilon, columns, x);
      kernels_.add(x, columns, hidden + uint64_t{row} * columns);
    }
  });
}

const RopeTable& CpuOps::RopeOfStep(const Rope& rope) {
  RopeTable& table = ropes_.For(rope);
  if (table.step == step_) return table;
  table.step = step_;
  table.Resize(batch_->rows());
  pool_->For(batch_->rows(), kRowGrain, [&](WorkRange range, uint32_t) {
    for (uint32_t row = range.begin; row < range.end; ++row) table.Fill(row, rows_[row].position);
  });
  return table;
}

// One head of query, K or V, in this order: its norm and rotation, then its place in `query` or in the pool.
void CpuOps::FinishHead(const AttentionWeights& weights, const KvLayer& kv, const RopeTable& rope,
                        uint32_t row, uint32_t head, float* query) {
  const uint32_t dim = kv.head_dim;
  const uint32_t heads = weights.heads;
  float* const x = wide() + (uint64_t{row} * (heads + 2 * kv.kv_heads) + head) * dim;
  const bool is_query = head < heads;
  if (head < heads + kv.kv_heads) {
    const Weight* const norm = is_query ? weights.q_norm : weights.k_norm;
    if (norm != nullptr) kernels_.rms_norm(x, Vector(norm).data(), weights.norm_epsilon, dim, x);
    kernels_.rope(rope.cos(row), rope.sin(row), rope.pairs(), rope.rope().interleaved, x);
  }
  if (is_query) {
    std::copy_n(x, dim, query + (uint64_t{row} * heads + head) * dim);
    return;
  }
  const KvRows cache(kv, rows_[row].sequence->tables[kv.group]);
  const uint32_t position = rows_[row].position;
  const uint32_t kv_head = (head - heads) % kv.kv_heads;
  std::byte* const to =
      head < heads + kv.kv_heads ? cache.Key(position, kv_head) : cache.Value(position, kv_head);
  kernels_.store(x, dim, StoredTypeOf(kv.type), to);
}

void CpuOps::AttentionInput(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan hidden,
                            DeviceSpan query) {
  const PackedWeight& qkv = Packed(weights.qkv);
  const uint32_t rows = batch_->rows();
  const uint32_t heads = weights.heads + 2 * kv.kv_heads;
  const RopeTable& rope = RopeOfStep(weights.rope);
  FillNormed(qkv, rows, Grain::kFine, weights.norm, weights.norm_epsilon, Floats(hidden));
  Multiply(qkv, wide(), false);
  pool_->For(rows * heads, kHeadGrain, [&](WorkRange range, uint32_t) {
    for (uint32_t i = range.begin; i < range.end; ++i) {
      FinishHead(weights, kv, rope, i / heads, i % heads, Floats(query));
    }
  });
}

void CpuOps::Attention(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan query,
                       DeviceSpan attended) {
  const AttentionPlan plan = CutAttention(*batch_, kv, weights.heads, pool_->threads());
  const uint64_t floats = AttentionScratchFloats(weights.heads, kv.kv_heads, kv.head_dim);
  partials_.resize(std::max<size_t>(partials_.size(), (plan.partial_floats + 15) / 16));
  float* const partials = partials_.empty() ? nullptr : partials_.data()->floats;
  pool_->For(static_cast<uint32_t>(plan.items.size()), 1, [&](WorkRange range, uint32_t thread) {
    for (uint32_t i = range.begin; i < range.end; ++i) {
      AttentionArgs args =
          ArgsFor(plan.items[i], kv, weights.heads, weights.scale, Floats(query), Floats(attended), partials);
      args.scratch = Scratch(thread, floats);
      kernels_.attention(args);
    }
  });
  pool_->For(static_cast<uint32_t>(plan.merges.size()), kMergeGrain, [&](WorkRange range, uint32_t) {
    for (uint32_t i = range.begin; i < range.end; ++i) {
      kernels_.merge_attention(ArgsFor(plan.merges[i], kv, weights.heads, Floats(attended), partials));
    }
  });
}

void CpuOps::AttentionOutput(const AttentionWeights& weights, DeviceSpan attended, DeviceSpan hidden) {
  const PackedWeight& matrix = Packed(weights.output);
  FillRows(matrix, batch_->rows(), Grain::kCoarse, [&](uint32_t row, float* to) {
    std::copy_n(Floats(attended) + uint64_t{row} * matrix.columns(), matrix.columns(), to);
  });
  AddProjected(matrix, weights.output_norm, weights.norm_epsilon, Floats(hidden));
}

void CpuOps::Mlp(const MlpWeights& weights, DeviceSpan hidden) {
  const PackedWeight& gate_up = Packed(weights.gate_up);
  const PackedWeight& down = Packed(weights.down);
  const uint32_t columns = down.columns();
  FillNormed(gate_up, batch_->rows(), Grain::kCoarse, weights.norm, weights.norm_epsilon, Floats(hidden));
  Multiply(gate_up, wide(), false);
  const auto gate = weights.activation == GateActivation::kSilu ? kernels_.silu_gate : kernels_.gelu_gate;
  FillRows(down, batch_->rows(), Grain::kCoarse, [&](uint32_t row, float* to) {
    const float* const x = wide() + uint64_t{row} * 2 * columns;
    gate(x, x + columns, columns, to);
  });
  AddProjected(down, weights.output_norm, weights.norm_epsilon, Floats(hidden));
}

void CpuOps::Head(const HeadWeights& weights, absl::Span<const uint32_t> rows, DeviceSpan hidden,
                  DeviceSpan logits) {
  const PackedWeight& head = Packed(weights.head);
  const float* const norm = Vector(weights.norm).data();
  FillRows(head, static_cast<uint32_t>(rows.size()), Grain::kFine, [&](uint32_t i, float* to) {
    const float* const from = Floats(hidden) + uint64_t{rows[i]} * head.columns();
    kernels_.rms_norm(from, norm, weights.norm_epsilon, head.columns(), to);
  });
  Multiply(head, Floats(logits), false);
}

}  // namespace

std::unique_ptr<Ops> CreateCpuOps(Device* device, const KernelTable& kernels, const CpuOpsOptions& options) {
  return std::make_unique<CpuOps>(device, kernels, options);
}

}  // namespace baton
