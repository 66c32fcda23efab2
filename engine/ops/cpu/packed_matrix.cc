#include "engine/ops/cpu/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "common/str_cat.h"
#include "engine/model_file/dequantize.h"
#include "engine/ops/cpu/quant_blocks.h"

namespace baton {
namespace {

// Bits of an element in `quants`, and floats or halves in `scales`.
struct FormatSizes {
  uint32_t bits = 0;
  uint32_t scale_bytes = 0;  // of one scale or minimum; 0: a float format
  uint32_t scales = 0;       // per row and block
};

FormatSizes SizesOf(PackFormat format) {
  switch (format) {
    case PackFormat::kQ4Zero8:
      return {4, 2, 1};
    case PackFormat::kQ4MinF16:
      return {4, 2, 2};
    case PackFormat::kQ4MinF32:
      return {4, 4, 2};
    case PackFormat::kQ5Zero16:
      return {5, 2, 1};
    case PackFormat::kQ5MinF16:
      return {5, 2, 2};
    case PackFormat::kQ5MinF32:
      return {5, 4, 2};
    case PackFormat::kQ6Zero32:
      return {8, 4, 2};
    case PackFormat::kQ8Zero128:
      return {8, 2, 1};
    case PackFormat::kF32:
      return {32, 0, 0};
    case PackFormat::kF16:
    case PackFormat::kBF16:
      return {16, 0, 0};
  }
  BATON_CHECK(false);
  return {};
}

PackFormat FormatFor(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return PackFormat::kF32;
    case TensorType::kF16:
      return PackFormat::kF16;
    case TensorType::kBF16:
      return PackFormat::kBF16;
    case TensorType::kQ4_0:
      return PackFormat::kQ4Zero8;
    case TensorType::kQ4_1:
      return PackFormat::kQ4MinF16;
    case TensorType::kQ5_0:
      return PackFormat::kQ5Zero16;
    case TensorType::kQ5_1:
      return PackFormat::kQ5MinF16;
    case TensorType::kQ8_0:
      return PackFormat::kQ8Zero128;
    case TensorType::kQ4_K:
      return PackFormat::kQ4MinF32;
    case TensorType::kQ5_K:
      return PackFormat::kQ5MinF32;
    case TensorType::kQ6_K:
      return PackFormat::kQ6Zero32;
  }
  BATON_CHECK(false);
  return PackFormat::kF32;
}

// Where one row of one block goes; see PackFormat.
class BlockWriter {
 public:
  BlockWriter(FormatSizes sizes, std::byte* quants, std::byte* scales)
      : sizes_(sizes), quants_(reinterpret_cast<uint8_t*>(quants)), scales_(scales) {}

  void WriteQuants(uint32_t row, const uint8_t* q) {
    for (uint32_t i = 0; i < kBlockColumns; ++i) {
      const uint32_t quad = i / 4;
      const uint32_t byte = 4 * row + i % 4;
      if (sizes_.bits == 8) {
        quants_[quad * 64 + byte] = q[i];
        continue;
      }
      uint8_t& packed = quants_[quad % 4 * 64 + byte];
      packed = static_cast<uint8_t>(packed | (q[i] & 15) << (quad < 4 ? 0 : 4));
      if (sizes_.bits == 5) {
        uint8_t& high = quants_[256 + quad * 8 + byte / 8];
        high = static_cast<uint8_t>(high | (q[i] >> 4) << byte % 8);
      }
    }
  }

  void WriteScale(uint32_t which, uint32_t row, float value) {
    std::byte* const to = scales_ + (which * kTileRows + row) * sizes_.scale_bytes;
    if (sizes_.scale_bytes == 4) {
      std::memcpy(to, &value, sizeof(value));
    } else {
      const uint16_t half = FloatToHalf(value);
      std::memcpy(to, &half, sizeof(half));
    }
  }

 private:
  const FormatSizes sizes_;
  uint8_t* const quants_;
  std::byte* const scales_;
};

void PackQuantTile(const TensorView& tensor, const PackedLayout& layout, uint32_t tile, std::byte* quants,
                   std::byte* scales) {
  const FormatSizes sizes = SizesOf(layout.format);
  const uint32_t blocks = layout.columns / kBlockColumns;
  const uint64_t row_bytes = tensor.data.size() / layout.rows;
  const uint32_t rows = std::min(kTileRows, layout.rows - tile * kTileRows);
  for (uint32_t index = 0; index < blocks; ++index) {
    BlockWriter writer(sizes, quants + index * (layout.tile_quant_bytes / blocks),
                       scales + index * (layout.tile_scale_bytes / blocks));
    for (uint32_t row = 0; row < rows; ++row) {
      const std::byte* const from = tensor.data.data() + (uint64_t{tile} * kTileRows + row) * row_bytes;
      const QuantBlock block = ReadQuantBlock(tensor.type, from, index);
      writer.WriteQuants(row, block.q);
      writer.WriteScale(0, row, block.d[0]);
      if (sizes.scales == 2)
        writer.WriteScale(1, row, tensor.type == TensorType::kQ6_K ? block.d[1] : block.m);
    }
  }
}

void PackFloatTile(const TensorView& tensor, const PackedLayout& layout, uint32_t tile, std::byte* quants) {
  const uint64_t bytes = SizesOf(layout.format).bits / 8;
  const uint32_t rows = std::min(kTileRows, layout.rows - tile * kTileRows);
  // Columns side by side in a row of the tile.
  const uint64_t together = layout.format == PackFormat::kBF16 ? 2 : 1;
  for (uint32_t row = 0; row < rows; ++row) {
    const std::byte* const from =
        tensor.data.data() + (uint64_t{tile} * kTileRows + row) * layout.columns * bytes;
    for (uint64_t column = 0; column < layout.columns; ++column) {
      const uint64_t to = (column / together * kTileRows + row) * together + column % together;
      std::memcpy(quants + to * bytes, from + column * bytes, bytes);
    }
  }
}

}  // namespace

bool IsFloatFormat(PackFormat format) { return SizesOf(format).scales == 0; }

absl::StatusOr<PackedLayout> LayoutOf(const TensorView& tensor) {
  PackedLayout layout;
  layout.format = FormatFor(tensor.type);
  layout.columns = static_cast<uint32_t>(tensor.dims[0]);
  layout.rows = static_cast<uint32_t>(tensor.dims[1]);
  layout.tiles = (layout.rows + kTileRows - 1) / kTileRows;
  const FormatSizes sizes = SizesOf(layout.format);
  if (sizes.scales > 0 && layout.columns % kBlockColumns != 0) {
    return absl::UnimplementedError(StrCat("tensor ", tensor.name, ": ", layout.columns, " columns of ",
                                           TraitsOf(tensor.type).name, ", must be a multiple of ",
                                           kBlockColumns));
  }
  uint64_t columns = layout.columns;
  if (layout.format == PackFormat::kBF16) {
    columns = (columns + kBlockColumns - 1) / kBlockColumns * kBlockColumns;
  }
  layout.tile_quant_bytes = columns * kTileRows * sizes.bits / 8;
  layout.tile_scale_bytes =
      uint64_t{layout.columns / kBlockColumns} * kTileRows * sizes.scale_bytes * sizes.scales;
  return layout;
}

void PackTiles(const TensorView& tensor, const PackedLayout& layout, uint32_t first, uint32_t end,
               std::byte* quants, std::byte* scales) {
  for (uint32_t tile = first; tile < end; ++tile) {
    std::byte* const tile_quants = quants + tile * layout.tile_quant_bytes;
    if (IsFloatFormat(layout.format)) {
      PackFloatTile(tensor, layout, tile, tile_quants);
    } else {
      PackQuantTile(tensor, layout, tile, tile_quants, scales + tile * layout.tile_scale_bytes);
    }
  }
}

}  // namespace baton
