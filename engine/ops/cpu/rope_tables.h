#ifndef BATON_ENGINE_OPS_CPU_ROPE_TABLES_H_
#define BATON_ENGINE_OPS_CPU_ROPE_TABLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ops/ops.h"

namespace baton {

// Cosines and sines of the rows of a step, [row][pair], for one Rope. Computed in double, so that long
// contexts lose nothing.
class RopeTable {
 public:
  explicit RopeTable(const Rope& rope);

  const Rope& rope() const { return rope_; }
  uint32_t pairs() const { return static_cast<uint32_t>(frequencies_.size()); }
  void Resize(uint32_t rows);
  void Fill(uint32_t row, uint32_t position);
  const float* cos(uint32_t row) const { return cos_.data() + uint64_t{row} * pairs(); }
  const float* sin(uint32_t row) const { return sin_.data() + uint64_t{row} * pairs(); }

  uint64_t step = 0;  // for which it is filled

 private:
  const Rope rope_;
  std::vector<double> frequencies_;  // radians per position
  std::vector<float> cos_, sin_;
};

// One table for each Rope that occurs in a model.
class RopeTables {
 public:
  RopeTable& For(const Rope& rope);

 private:
  std::vector<std::unique_ptr<RopeTable>> tables_;
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_ROPE_TABLES_H_
