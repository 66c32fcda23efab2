#ifndef BATON_ENGINE_OPS_CPU_PACKED_MATRIX_H_
#define BATON_ENGINE_OPS_CPU_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/cpu/kernels.h"

namespace baton {

// The size and the format that a tensor takes once it is packed for the kernels.
struct PackedLayout {
  PackFormat format = PackFormat::kF32;
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t tiles = 0;  // of 16 rows, the last one padded with zeros
  uint64_t tile_quant_bytes = 0;
  uint64_t tile_scale_bytes = 0;

  uint64_t quant_bytes() const { return tiles * tile_quant_bytes; }
  uint64_t scale_bytes() const { return tiles * tile_scale_bytes; }
};

bool IsFloatFormat(PackFormat format);

// Every tensor type has a format that holds its values exactly. UNIMPLEMENTED for quantised rows that 32 does
// not divide.
absl::StatusOr<PackedLayout> LayoutOf(const TensorView& tensor);

// Packs tiles [first, end) of `tensor` into the places of the whole matrix. Tiles may be packed by several
// threads.
void PackTiles(const TensorView& tensor, const PackedLayout& layout, uint32_t first, uint32_t end,
               std::byte* quants, std::byte* scales);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_PACKED_MATRIX_H_
