#include "client/percentiles.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/check.h"

namespace baton {

Percentiles::Percentiles(std::vector<double> values) : sorted_(std::move(values)) {
  std::sort(sorted_.begin(), sorted_.end());
}

double Percentiles::At(double percent) const {
  BATON_CHECK(!sorted_.empty());
  BATON_CHECK(percent >= 0 && percent <= 100);
  const double rank = std::ceil(percent * static_cast<double>(sorted_.size()) / 100);
  return sorted_[rank < 1 ? 0 : static_cast<size_t>(rank) - 1];
}

double Percentiles::min() const {
  BATON_CHECK(!sorted_.empty());
  return sorted_.front();
}

double Percentiles::max() const {
  BATON_CHECK(!sorted_.empty());
  return sorted_.back();
}

double Percentiles::mean() const {
  BATON_CHECK(!sorted_.empty());
  return std::accumulate(sorted_.begin(), sorted_.end(), 0.0) / static_cast<double>(sorted_.size());
}

}  // namespace baton
