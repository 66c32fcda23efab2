#include "engine/ops/cpu/rope_tables.h"

#include <cmath>

namespace baton {

RopeTable::RopeTable(const Rope& rope) : rope_(rope), frequencies_(rope.dims / 2) {
  for (uint32_t i = 0; i < frequencies_.size(); ++i) {
    frequencies_[i] = double{rope.position_scale} * std::pow(double{rope.base}, -2.0 * i / rope.dims);
    if (!rope.divisors.empty()) frequencies_[i] /= rope.divisors[i];
  }
}

void RopeTable::Resize(uint32_t rows) {
  cos_.resize(uint64_t{rows} * pairs());
  sin_.resize(uint64_t{rows} * pairs());
}

void RopeTable::Fill(uint32_t row, uint32_t position) {
  for (uint32_t i = 0; i < pairs(); ++i) {
    const double angle = frequencies_[i] * position;
    cos_[uint64_t{row} * pairs() + i] = static_cast<float>(std::cos(angle));
    sin_[uint64_t{row} * pairs() + i] = static_cast<float>(std::sin(angle));
  }
}

RopeTable& RopeTables::For(const Rope& rope) {
  for (const std::unique_ptr<RopeTable>& table : tables_) {
    if (table->rope() == rope) return *table;
  }
  tables_.push_back(std::make_unique<RopeTable>(rope));
  return *tables_.back();
}

}  // namespace baton
