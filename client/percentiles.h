#ifndef BATON_CLIENT_PERCENTILES_H_
#define BATON_CLIENT_PERCENTILES_H_

#include <cstddef>
#include <vector>

namespace baton {

// The exact distribution of a set of measurements: every one is kept and sorted. A plain value.
class Percentiles {
 public:
  // Takes values in any order and unit; none may be NaN.
  explicit Percentiles(std::vector<double> values);

  size_t count() const { return sorted_.size(); }
  bool empty() const { return sorted_.empty(); }

  // The smallest value that at least `percent` % of all values do not exceed (nearest rank); `percent` lies
  // in [0, 100], 0 gives the least. Not to be called when empty, nor are the next three.
  double At(double percent) const;
  double min() const;
  double max() const;
  double mean() const;

  const std::vector<double>& sorted() const { return sorted_; }

 private:
  std::vector<double> sorted_;
};

}  // namespace baton

#endif  // BATON_CLIENT_PERCENTILES_H_
