#include "engine/ops/cpu/packed_weight.h"

#include <algorithm>

#include "common/status_macros.h"

namespace baton {
namespace {

// Weights that stay in the L2 cache while all panels pass.
constexpr uint64_t kTileGroupBytes = 256 * 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<PackedWeight>> PackedWeight::Load(absl::Span<const TensorView* const> tensors,
                                                                 ThreadPool& pool, WeightArena& arena) {
  std::unique_ptr<PackedWeight> weight(new PackedWeight());
  for (const TensorView* tensor : tensors) {
    Part part;
    ASSIGN_OR_RETURN(part.layout, LayoutOf(*tensor));
    ASSIGN_OR_RETURN(std::byte * quants, arena.Allocate(part.layout.quant_bytes()));
    ASSIGN_OR_RETURN(std::byte * scales, arena.Allocate(part.layout.scale_bytes()));
    pool.For(part.layout.tiles, 1, [&](WorkRange tiles, uint32_t) {
      PackTiles(*tensor, part.layout, tiles.begin, tiles.end, quants, scales);
    });
    part.quants = quants;
    part.scales = scales;
    part.first_row = weight->rows_;
    part.first_tile = weight->tiles_;
    weight->rows_ += part.layout.rows;
    weight->tiles_ += part.layout.tiles;
    weight->columns_ = part.layout.columns;
    if (part.layout.format == PackFormat::kBF16) {
      weight->has_bf16_ = true;
    } else if (IsFloatFormat(part.layout.format)) {
      weight->has_floats_ = true;
    } else {
      weight->has_blocks_ = true;
    }
    weight->parts_.push_back(part);
  }
  return weight;
}

void PackedWeight::Multiply(const KernelTable& kernels, WorkRange tiles, const Activations& activations,
                            std::byte* unpacked, float* out, bool accumulate) const {
  for (const Part& part : parts_) {
    const uint32_t part_end = part.first_tile + part.layout.tiles;
    if (tiles.end <= part.first_tile || tiles.begin >= part_end) continue;
    const uint32_t begin = std::max(tiles.begin, part.first_tile) - part.first_tile;
    const uint32_t end = std::min(tiles.end, part_end) - part.first_tile;
    const uint64_t tile_bytes = part.layout.tile_quant_bytes + part.layout.tile_scale_bytes;
    const uint32_t group = static_cast<uint32_t>(std::max<uint64_t>(1, kTileGroupBytes / tile_bytes));
    for (uint32_t tile = begin; tile < end; tile += std::min(group, end - tile)) {
      kernels.matmul({.format = part.layout.format,
                      .quants = part.quants,
                      .scales = part.scales,
                      .tile_quant_bytes = part.layout.tile_quant_bytes,
                      .tile_scale_bytes = part.layout.tile_scale_bytes,
                      .columns = columns_,
                      .rows = part.layout.rows,
                      .first_tile = tile,
                      .end_tile = tile + std::min(group, end - tile),
                      .panels = activations.panels().data(),
                      .panel_count = static_cast<uint32_t>(activations.panels().size()),
                      .out = out + part.first_row,
                      .out_stride = rows_,
                      .accumulate = accumulate,
                      .unpacked = unpacked});
    }
  }
}

}  // namespace baton
