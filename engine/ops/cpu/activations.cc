#include "engine/ops/cpu/activations.h"

#include "common/check.h"
#include "common/status_macros.h"

namespace baton {
namespace {

// The widest panel of those that kernels have.
uint32_t PanelRows(uint32_t remaining, uint32_t limit) {
  for (const uint32_t rows : {kMaxPanelRows, 8u, 4u, 2u}) {
    if (rows <= limit && rows <= remaining) return rows;
  }
  return 1;
}

}  // namespace

absl::Status Activations::Reserve(Device* device, uint32_t rows, uint32_t columns) {
  const uint64_t blocks = uint64_t{rows} * ((columns + kBlockColumns - 1) / kBlockColumns);
  capacity_ = blocks * kBlockColumns;
  constexpr uint64_t kWordsPerBlock = kBlockColumns + kBlockColumns / 4 + 5;  // of 4 bytes
  ASSIGN_OR_RETURN(memory_, device->Allocate(blocks * kWordsPerBlock * sizeof(float)));
  values_ = reinterpret_cast<float*>(memory_.span().data);
  quads_ = reinterpret_cast<int32_t*>(values_ + capacity_);
  scales_ = reinterpret_cast<float*>(quads_ + capacity_ / 4);
  sums_ = scales_ + blocks;
  negated_ = reinterpret_cast<int32_t*>(sums_ + blocks);
  negated16_ = negated_ + blocks;
  return absl::OkStatus();
}

void Activations::Shape(uint32_t rows, uint32_t columns, uint32_t panel_rows) {
  BATON_CHECK(uint64_t{rows} * columns <= capacity_);
  columns_ = columns;
  panels_.clear();
  const uint64_t blocks = columns / kBlockColumns;
  for (uint32_t first = 0; first < rows;) {
    const uint32_t count = PanelRows(rows - first, panel_rows);
    const uint64_t block = first * blocks;
    panels_.push_back({.first_row = first,
                       .rows = count,
                       .quads = quads_ + block * (kBlockColumns / 4),
                       .scales = scales_ + block,
                       .sums = sums_ + block,
                       .negated = negated_ + block,
                       .negated16 = negated16_ + block * 2,
                       .values = row(first)});
    first += count;
  }
}

void Activations::Quantize(const KernelTable& kernels, uint32_t panel) {
  const ActivationPanel& p = panels_[panel];
  const uint64_t block = uint64_t{p.first_row} * (columns_ / kBlockColumns);
  for (uint32_t i = 0; i < p.rows; ++i) {
    kernels.quantize({.values = row(p.first_row + i),
                      .columns = columns_,
                      .rows = p.rows,
                      .quads = quads_ + block * (kBlockColumns / 4) + i,
                      .scales = scales_ + block + i,
                      .sums = sums_ + block + i,
                      .negated = negated_ + block + i,
                      .negated16 = negated16_ + block * 2 + i});
  }
}

}  // namespace baton
