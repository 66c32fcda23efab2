#include "engine/sampling/row_scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace baton {
namespace {

// Four lanes: what every x86-64 and every ARM64 processor has, so that one compilation serves all.
constexpr size_t kLanes = 4;
typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLeastExponent = -87.0f;  // exp of less is as good as nothing, and soon subnormal

Floats Load(const float* from) {
  Floats v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

Floats Broadcast(float x) { return Floats{x, x, x, x}; }

Floats Masked(Floats v, Ints mask) { return reinterpret_cast<Floats>(reinterpret_cast<Ints>(v) & mask); }

bool Any(Ints mask) {
  uint64_t halves[2];
  std::memcpy(halves, &mask, sizeof(mask));
  return (halves[0] | halves[1]) != 0;
}

// exp(x) for x <= 0, within 2e-7 of it; 0 for x < kLeastExponent and for NaN; 1 for x > 0.
Floats Exp(Floats x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits, so that n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  const Ints valid = x >= Broadcast(kLeastExponent);
  x = Masked(x, valid & (x < Broadcast(0.0f)));
  const Ints n =
      __builtin_convertvector(x * kLog2E - 0.5f, Ints);  // truncation upwards: to the nearest, as x <= 0
  const Floats whole = __builtin_convertvector(n, Floats);
  const Floats r = x - whole * kLn2High - whole * kLn2Low;
  Floats y = r * (1.0f / 5040) + (1.0f / 720);
  y = y * r + (1.0f / 120);
  y = y * r + (1.0f / 24);
  y = y * r + (1.0f / 6);
  y = y * r + 0.5f;
  y = y * r + 1.0f;
  y = y * r + 1.0f;
  const Ints power = (n + 127) << 23;  // 2^n
  return Masked(y * reinterpret_cast<Floats>(power), valid);
}

// The bin of exponent x <= 0: kBins of equal width for [kLeastExponent, 0], and all below in the last one.
Ints BinOf(Floats x) {
  const Ints valid = x >= Broadcast(kLeastExponent);
  constexpr float kBinsPerUnit = (SoftmaxWeights::kBins - 1) / -kLeastExponent;
  const Ints last = Ints{0, 0, 0, 0} + static_cast<int32_t>(SoftmaxWeights::kBins - 1);
  const Ints bin = __builtin_convertvector(Masked(x, valid & (x < Broadcast(0.0f))) * -kBinsPerUnit, Ints);
  return (bin & valid) | (last & ~valid);
}

}  // namespace

float RowMax(absl::Span<const float> row) {
  Floats max[4] = {Broadcast(kNegativeInfinity), Broadcast(kNegativeInfinity), Broadcast(kNegativeInfinity),
                   Broadcast(kNegativeInfinity)};
  size_t i = 0;
  for (; i + 4 * kLanes <= row.size(); i += 4 * kLanes) {
    for (size_t j = 0; j < 4; ++j) {
      const Floats x = Load(&row[i + j * kLanes]);
      max[j] = x > max[j] ? x : max[j];  // false for NaN
    }
  }
  float greatest = kNegativeInfinity;
  for (const Floats& m : max) {
    for (size_t j = 0; j < kLanes; ++j) greatest = m[j] > greatest ? m[j] : greatest;
  }
  for (; i < row.size(); ++i) greatest = row[i] > greatest ? row[i] : greatest;
  return std::min(greatest, std::numeric_limits<float>::max());
}

bool AnyAtLeast(absl::Span<const float> block, float threshold) {
  const Floats limit = Broadcast(threshold);
  Ints found = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + kLanes <= block.size(); i += kLanes) found |= Load(&block[i]) >= limit;
  for (; i < block.size(); ++i) found[0] |= block[i] >= threshold;
  return Any(found);
}

size_t FirstAtLeast(absl::Span<const float> row, float threshold) {
  for (size_t begin = 0; begin < row.size(); begin += kRowBlock) {
    const absl::Span<const float> block = row.subspan(begin, kRowBlock);
    if (!AnyAtLeast(block, threshold)) continue;
    const auto first = std::find_if(block.begin(), block.end(), [&](float x) { return x >= threshold; });
    return begin + static_cast<size_t>(first - block.begin());
  }
  return row.size();
}

float KthGreatest(absl::Span<const float> row, size_t k) {
  // Candidates for the k greatest of what was seen so far, cut back to k whenever there are many more.
  const size_t most = k + std::max(k, 16 * kRowBlock);
  std::vector<float> kept;
  kept.reserve(std::min(row.size(), most));
  float threshold = kNegativeInfinity;
  const auto cut_back = [&] {
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end(), std::greater<float>());
    threshold = kept[k - 1];
    kept.resize(k);
  };
  for (size_t begin = 0; begin < row.size(); begin += kRowBlock) {
    ForEachAtLeast(row.subspan(begin, kRowBlock), threshold, [&](TokenId, float x) {
      if (x > threshold) kept.push_back(x);
    });
    if (kept.size() + kRowBlock > most) cut_back();
  }
  if (kept.size() < k) return kNegativeInfinity;
  cut_back();
  return std::min(threshold, std::numeric_limits<float>::max());
}

SoftmaxWeights::SoftmaxWeights(float max, double temperature)
    : max_(max),
      // Colder than this nothing changes any more, and an infinite factor would make 0 * inf of the greatest
      // logits.
      temperature_(std::max(temperature, 1e-30)),
      inverse_temperature_(static_cast<float>(1 / temperature_)) {}

float SoftmaxWeights::Weight(float logit) const {
  return Exp((Broadcast(logit) - max_) * inverse_temperature_)[0];
}

double SoftmaxWeights::BlockSum(absl::Span<const float> block) const {
  Floats sums[2] = {Broadcast(0), Broadcast(0)};
  size_t i = 0;
  for (; i + 2 * kLanes <= block.size(); i += 2 * kLanes) {
    for (size_t j = 0; j < 2; ++j)
      sums[j] += Exp((Load(&block[i + j * kLanes]) - max_) * inverse_temperature_);
  }
  double sum = 0;
  for (const Floats& s : sums) {
    for (size_t j = 0; j < kLanes; ++j) sum += s[j];
  }
  for (; i < block.size(); ++i) sum += Weight(block[i]);
  return sum;
}

double SoftmaxWeights::Sum(absl::Span<const float> row) const {
  double sum = 0;
  for (size_t begin = 0; begin < row.size(); begin += kRowBlock)
    sum += BlockSum(row.subspan(begin, kRowBlock));
  return sum;
}

float SoftmaxWeights::LogitBelow(double weight) const {
  // The margin, in units of the exponent, is far above any rounding of Weight.
  constexpr double kMargin = 1e-3;
  const double below = max_ + temperature_ * (std::log(weight) - kMargin) - std::abs(max_) * 1e-6;
  return static_cast<float>(std::max<double>(below, std::numeric_limits<float>::lowest()));
}

void SoftmaxWeights::SumBins(absl::Span<const float> row, float floor, absl::Span<double> masses) const {
  std::fill(masses.begin(), masses.end(), 0.0);
  const auto add = [&](Floats logits) {
    const Floats exponents = (logits - max_) * inverse_temperature_;
    const Floats weights = Masked(Exp(exponents), logits >= Broadcast(floor));
    const Ints bins = BinOf(exponents);
    for (size_t j = 0; j < kLanes; ++j) masses[bins[j]] += weights[j];
  };
  for (size_t begin = 0; begin < row.size(); begin += kRowBlock) {
    const absl::Span<const float> block = row.subspan(begin, kRowBlock);
    if (!AnyAtLeast(block, floor)) continue;
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes) add(Load(&block[i]));
    for (; i < block.size(); ++i)
      add(Floats{block[i], kNegativeInfinity, kNegativeInfinity, kNegativeInfinity});
  }
}

size_t SoftmaxWeights::Bin(float logit) const {
  return static_cast<size_t>(BinOf((Broadcast(logit) - max_) * inverse_temperature_)[0]);
}

}  // namespace baton
