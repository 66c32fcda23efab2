#ifndef BATON_ENGINE_SAMPLING_ROW_SCAN_H_
#define BATON_ENGINE_SAMPLING_ROW_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/token.h"

// Linear passes over one row of logits [vocab], made for rows of 262,144. They neither sort nor copy the row.
// The bits of a result depend on the row alone and are the same on every processor: the exponential is
// computed here, sums have a fixed order. NaN counts as -infinity, +infinity as the greatest float. Pure
// functions, safe from any thread.
namespace baton {

// The greatest logit; -infinity when there is none above.
float RowMax(absl::Span<const float> row);

// The lowest id whose logit is at least `threshold`; row.size() when there is none.
size_t FirstAtLeast(absl::Span<const float> row, float threshold);

// The k-th greatest logit, equal ones counted one by one; -infinity when fewer than k are above it. k >= 1.
float KthGreatest(absl::Span<const float> row, size_t k);

// A block of a row: the unit in which passes skip and sum.
inline constexpr size_t kRowBlock = 256;

// Whether any logit of at most kRowBlock ones is at least `threshold`.
bool AnyAtLeast(absl::Span<const float> block, float threshold);

// Calls visit(id, logit) for every logit that is at least `threshold`, ids ascending.
template <typename Visit>
void ForEachAtLeast(absl::Span<const float> row, float threshold, Visit visit) {
  for (size_t begin = 0; begin < row.size(); begin += kRowBlock) {
    const absl::Span<const float> block = row.subspan(begin, kRowBlock);
    if (!AnyAtLeast(block, threshold)) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] >= threshold) visit(static_cast<TokenId>(begin + i), block[i]);
    }
  }
}

// exp((logit - max) / temperature): 1 for the greatest logit, 0 below exp(-87).
class SoftmaxWeights {
 public:
  // `max` is the row's RowMax and not -infinity; temperature > 0.
  SoftmaxWeights(float max, double temperature);

  float Weight(float logit) const;
  // The sum of the weights of at most kRowBlock logits.
  double BlockSum(absl::Span<const float> block) const;
  // The sum over a row, in block order.
  double Sum(absl::Span<const float> row) const;
  // A logit whose weight is a little below `weight`: every logit with at least that weight is at least this.
  float LogitBelow(double weight) const;

  // Splits all logits into kBins by their distance from the greatest one, which is in bin 0: a greater logit
  // is never in a later bin. `masses` [kBins] gets the sum of the weights of each bin's logits that are at
  // least `floor`.
  static constexpr size_t kBins = 4096;
  void SumBins(absl::Span<const float> row, float floor, absl::Span<double> masses) const;
  size_t Bin(float logit) const;

 private:
  float max_;
  double temperature_;
  float inverse_temperature_;
};

}  // namespace baton

#endif  // BATON_ENGINE_SAMPLING_ROW_SCAN_H_
