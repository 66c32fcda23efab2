#include "engine/ops/cpu/activations.h"

#include <algorithm>

#include "common/check.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr uint32_t kBlockQuads = kBlockColumns / 4;

// The widest panel of those that kernels have, but two of 8 for 16: a panel of 4 is a third slower for each
// row.
uint32_t PanelRows(uint32_t remaining, uint32_t limit) {
  if (remaining == 16 && limit >= 8 && limit < kTilePanelRows) return 8;
  for (const uint32_t rows : {kTilePanelRows, kMaxPanelRows, 8u, 4u, 2u}) {
    if (rows <= limit && rows <= remaining) return rows;
  }
  return 1;
}

}  // namespace

absl::Status Activations::Reserve(Device* device, uint32_t rows, uint32_t columns) {
  const uint64_t blocks = uint64_t{rows} * ((columns + kBlockColumns - 1) / kBlockColumns);
  capacity_ = blocks * kBlockColumns;
  // Words of 4 bytes: values, rest and bfloat16, then for two int8 each the quads and five for a block.
  constexpr uint64_t kWordsPerBlock = 2 * kBlockColumns + kBlockColumns / 2 + 2 * (kBlockQuads + 5);
  ASSIGN_OR_RETURN(memory_, device->Allocate(blocks * kWordsPerBlock * sizeof(float)));
  values_ = reinterpret_cast<float*>(memory_.span().data);
  rest_ = values_ + capacity_;
  bf16_ = reinterpret_cast<uint16_t*>(rest_ + capacity_);
  quads_ = reinterpret_cast<int32_t*>(bf16_ + capacity_);
  scales_ = reinterpret_cast<float*>(quads_ + capacity_ / 2);
  sums_ = scales_ + 2 * blocks;
  negated_ = reinterpret_cast<int32_t*>(sums_ + 2 * blocks);
  negated16_ = negated_ + 2 * blocks;
  return absl::OkStatus();
}

uint64_t Activations::bf16_columns() const {
  return (uint64_t{columns_} + kBlockColumns - 1) / kBlockColumns * kBlockColumns;
}

void Activations::Shape(uint32_t rows, uint32_t columns, uint32_t panel_rows, Grain grain) {
  columns_ = columns;
  BATON_CHECK(rows * bf16_columns() <= capacity_);
  panels_.clear();
  const bool fine = grain == Grain::kFine;
  const uint32_t halves = fine ? 2 : 1;
  for (uint32_t first = 0; first < rows;) {
    const uint32_t count = PanelRows((rows - first) * halves, panel_rows);
    const uint64_t block = uint64_t{first} * halves * (columns / kBlockColumns);
    panels_.push_back({.first_row = first,
                       .rows = count,
                       .quads = quads_ + block * kBlockQuads,
                       .scales = scales_ + block,
                       .sums = sums_ + block,
                       .negated = negated_ + block,
                       .negated16 = negated16_ + block * 2,
                       .values = fine ? nullptr : row(first),
                       .bf16 = fine ? nullptr : bf16_ + first * bf16_columns(),
                       .bf16_columns = bf16_columns(),
                       .fine = fine});
    first += count / halves;
  }
}

void Activations::Quantize(const KernelTable& kernels, uint32_t panel) {
  const ActivationPanel& p = panels_[panel];
  const uint32_t rows = RowsOf(p);
  const uint64_t block = static_cast<uint64_t>(p.scales - scales_);
  const bool in_tiles = p.rows == kTilePanelRows;
  for (uint32_t i = 0; i < p.rows; ++i) {
    const bool second = i >= rows;
    const uint32_t at = p.first_row + i % rows;
    float* const rest = rest_ + uint64_t{at} * columns_;
    kernels.quantize({.values = second ? rest : row(at),
                      .columns = columns_,
                      .rows = p.rows,
                      .quads = quads_ + block * kBlockQuads + i * (in_tiles ? kBlockQuads : 1),
                      .quad_stride = in_tiles ? 1 : p.rows,
                      .scales = scales_ + block + i,
                      .sums = sums_ + block + i,
                      .negated = negated_ + block + i,
                      .negated16 = negated16_ + block * 2 + i,
                      .rest = p.fine && !second ? rest : nullptr});
  }
}

void Activations::RoundToBf16(const KernelTable& kernels, uint32_t panel) {
  const ActivationPanel& p = panels_[panel];
  BATON_CHECK(!p.fine);
  for (uint32_t i = p.first_row; i < p.first_row + p.rows; ++i) {
    uint16_t* const to = bf16_ + i * bf16_columns();
    kernels.store(row(i), columns_, StoredType::kBF16, reinterpret_cast<std::byte*>(to));
    std::fill(to + columns_, to + bf16_columns(), uint16_t{0});
  }
}

}  // namespace baton
