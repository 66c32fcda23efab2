#ifndef BATON_ENGINE_OPS_CPU_PACKED_WEIGHT_H_
#define BATON_ENGINE_OPS_CPU_PACKED_WEIGHT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/cpu/activations.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/cpu/packed_matrix.h"
#include "engine/ops/cpu/thread_pool.h"
#include "engine/ops/cpu/weight_arena.h"
#include "engine/ops/ops.h"

namespace baton {

// Matrices stacked by rows, each packed in the format of its own type. Immutable once loaded; its memory is
// the arena's.
class PackedWeight final : public Weight {
 public:
  // Packs with all threads of `pool`.
  static absl::StatusOr<std::unique_ptr<PackedWeight>> Load(absl::Span<const TensorView* const> tensors,
                                                            ThreadPool& pool, WeightArena& arena);

  uint32_t rows() const { return rows_; }
  uint32_t columns() const { return columns_; }
  // Some part is of blocks, which multiply quantised activations; of float or half, which multiply float; of
  // bfloat16, which multiplies as KernelTable::bf16 says.
  bool has_blocks() const { return has_blocks_; }
  bool has_floats() const { return has_floats_; }
  bool has_bf16() const { return has_bf16_; }

  // Of all parts together.
  uint32_t tiles() const { return tiles_; }

  // out[row][r] = weight[r] . activations[row] for the rows r of `tiles`, or += with `accumulate`. `out` is
  // [activation rows][rows()]. `unpacked` is scratch; see MatmulArgs.
  void Multiply(const KernelTable& kernels, WorkRange tiles, const Activations& activations,
                std::byte* unpacked, float* out, bool accumulate) const;

 private:
  struct Part {
    PackedLayout layout;
    const std::byte* quants = nullptr;
    const std::byte* scales = nullptr;
    uint32_t first_row = 0;  // in the stack
    uint32_t first_tile = 0;
  };

  PackedWeight() = default;

  std::vector<Part> parts_;
  uint32_t rows_ = 0;
  uint32_t tiles_ = 0;
  uint32_t columns_ = 0;
  bool has_blocks_ = false;
  bool has_floats_ = false;
  bool has_bf16_ = false;
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_PACKED_WEIGHT_H_
