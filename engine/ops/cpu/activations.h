#ifndef BATON_ENGINE_OPS_CPU_ACTIVATIONS_H_
#define BATON_ENGINE_OPS_CPU_ACTIVATIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/device/device.h"
#include "engine/ops/cpu/kernels.h"

namespace baton {

// The rows that a matrix multiplies, as float, as bfloat16 and quantised in panels. Shaped by one thread,
// then filled panel by panel, each by one thread.
//
// kFine quantises what the first int8 left of a value once more, for matrices whose input rounding shows in
// the output most; it doubles their multiplications, on weights that are read once.
class Activations {
 public:
  absl::Status Reserve(Device* device, uint32_t rows, uint32_t columns);

  enum class Grain { kCoarse, kFine };

  // `rows` rows of `columns` from now on, cut into panels of at most `panel_rows`.
  void Shape(uint32_t rows, uint32_t columns, uint32_t panel_rows, Grain grain);

  const std::vector<ActivationPanel>& panels() const { return panels_; }
  // The rows [first_row, first_row + RowsOf(panel)) that a panel holds.
  static uint32_t RowsOf(const ActivationPanel& panel) { return panel.fine ? panel.rows / 2 : panel.rows; }
  float* row(uint32_t row) { return values_ + uint64_t{row} * columns_; }
  // Once the panel's rows are written. Not for columns that 32 does not divide.
  void Quantize(const KernelTable& kernels, uint32_t panel);
  // To bfloat16, once the panel's rows are written. Not for a fine panel.
  void RoundToBf16(const KernelTable& kernels, uint32_t panel);

 private:
  uint64_t bf16_columns() const;  // columns of `bf16`

  uint32_t columns_ = 0;
  std::vector<ActivationPanel> panels_;

  DeviceBuffer memory_;  // of everything below, for rows * columns up to capacity_
  uint64_t capacity_ = 0;
  float* values_ = nullptr;   // [rows][columns]
  float* rest_ = nullptr;     // [rows][columns], what the first rounding left
  uint16_t* bf16_ = nullptr;  // [rows][bf16_columns()]
  // For twice as many rows, panel by panel.
  int32_t* quads_ = nullptr;
  float* scales_ = nullptr;
  float* sums_ = nullptr;
  int32_t* negated_ = nullptr;
  int32_t* negated16_ = nullptr;
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_ACTIVATIONS_H_
