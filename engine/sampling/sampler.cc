#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "common/check.h"
#include "engine/sampling/philox.h"

namespace baton {
namespace {

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

struct Candidate {
  TokenId id;
  float logit;
  float weight;
};

// Most likely first; a strict order of all tokens.
bool MoreLikely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The last of the most likely candidates that together weigh at least `goal`, in linear time. `candidates`
// are reordered, and not empty.
Candidate LastWithin(std::vector<Candidate>& candidates, double goal) {
  constexpr ptrdiff_t kFewEnoughToSort = 32;
  auto begin = candidates.begin();
  auto end = candidates.end();
  double before = 0;  // the weight of all that come before `begin`
  while (end - begin > kFewEnoughToSort) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, MoreLikely);
    double half = 0;
    for (auto c = begin; c != middle; ++c) half += c->weight;
    if (before + half >= goal) {
      end = middle;
    } else {
      before += half;
      begin = middle;
    }
  }
  std::sort(begin, end, MoreLikely);
  for (auto c = begin; c != end; ++c) {
    before += c->weight;
    if (before >= goal) return *c;
  }
  return *(end - 1);
}

template <typename Support, typename Visit>
void ForEachIn(const Support& support, absl::Span<const float> logits, Visit visit) {
  ForEachAtLeast(logits, support.floor, [&](TokenId id, float logit) {
    if (logit == support.floor && id > support.last_tied) return;
    const float weight = support.weights.Weight(logit);
    if (weight > 0 && weight >= support.least_weight) visit(id, weight);
  });
}

// Inverts the cumulative weights, ids ascending: by whole blocks, then inside the one that holds the target.
TokenId DrawFromAll(const SoftmaxWeights& weights, absl::Span<const float> logits, double uniform) {
  std::vector<double> sums;
  double total = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kRowBlock) {
    sums.push_back(weights.BlockSum(logits.subspan(begin, kRowBlock)));
    total += sums.back();
  }
  // uniform < 1, so the target is below the total, and the same sums in the same order reach the total.
  const double target = uniform * total;
  double before = 0;
  size_t block = 0;
  for (; before + sums[block] <= target; ++block) before += sums[block];
  TokenId drawn = 0;
  const size_t end = std::min((block + 1) * kRowBlock, logits.size());
  for (size_t id = block * kRowBlock; id < end && before <= target; ++id) {
    const float weight = weights.Weight(logits[id]);
    before += weight;
    if (weight > 0) drawn = static_cast<TokenId>(id);
  }
  // Where the block's weights, added singly, round to less than their sum, its last possible token.
  return drawn;
}

TokenId DrawFrom(absl::Span<const std::pair<TokenId, float>> candidates, double uniform) {
  double total = 0;
  for (const auto& [id, weight] : candidates) total += weight;
  double before = 0;
  for (const auto& [id, weight] : candidates) {
    before += weight;
    if (before > uniform * total) return id;
  }
  return candidates.back().first;
}

}  // namespace

Sampler::Sampler(SamplingParams params, uint32_t vocab_size, absl::Span<const TokenId> prompt,
                 absl::Span<const TokenId> output_so_far)
    : params_(std::move(params)), vocab_size_(vocab_size) {
  if (params_.repetition_penalty != 1) {
    for (TokenId id : prompt) {
      BATON_CHECK(id < vocab_size_);
      output_counts_.try_emplace(id, 0);
    }
  }
  for (TokenId id : output_so_far) Observe(id);
}

bool Sampler::penalizes() const {
  return params_.repetition_penalty != 1 || params_.presence_penalty != 0 || params_.frequency_penalty != 0;
}

void Sampler::Observe(TokenId output) {
  BATON_CHECK(output < vocab_size_);
  ++output_tokens_;
  if (penalizes()) ++output_counts_[output];
}

void Sampler::Adjust(absl::Span<float> logits) const {
  const float repetition = static_cast<float>(params_.repetition_penalty);
  for (const auto& [id, count] : output_counts_) {
    float& logit = logits[id];
    logit = logit < 0 ? logit * repetition : logit / repetition;
    if (count > 0) logit -= static_cast<float>(params_.presence_penalty + params_.frequency_penalty * count);
  }
  for (const auto& [id, bias] : params_.logit_bias) logits[id] += bias;
  if (output_tokens_ < params_.min_tokens) {
    for (TokenId id : params_.stop_ids) logits[id] = kNegativeInfinity;
  }
}

Sampler::Support Sampler::FindSupport(absl::Span<const float> logits, float max) const {
  Support support{SoftmaxWeights(max, params_.temperature), kNegativeInfinity,
                  std::numeric_limits<TokenId>::max(), 0};
  if (params_.top_k > 0 && params_.top_k < logits.size()) support.floor = KthGreatest(logits, params_.top_k);
  if (params_.top_p < 1) CutToTopP(logits, support);
  if (params_.min_p > 0) {
    support.least_weight = static_cast<float>(params_.min_p);
    const float floor = support.weights.LogitBelow(params_.min_p);
    if (floor > support.floor) {
      support.floor = floor;
      support.last_tied = std::numeric_limits<TokenId>::max();
    }
  }
  return support;
}

void Sampler::CutToTopP(absl::Span<const float> logits, Support& support) const {
  std::vector<double> masses(SoftmaxWeights::kBins);
  support.weights.SumBins(logits, support.floor, absl::MakeSpan(masses));
  // top_p < 1 and the same sums in the same order: one bin reaches the goal.
  const double goal = params_.top_p * std::accumulate(masses.begin(), masses.end(), 0.0);
  double before = 0;
  size_t bin = 0;
  for (; before + masses[bin] < goal; ++bin) before += masses[bin];
  std::vector<Candidate> candidates;
  ForEachAtLeast(logits, support.floor, [&](TokenId id, float logit) {
    if (support.weights.Bin(logit) == bin) candidates.push_back({id, logit, support.weights.Weight(logit)});
  });
  const Candidate last = LastWithin(candidates, goal - before);
  support.floor = last.logit;
  support.last_tied = last.id;
}

TokenId Sampler::Choose(absl::Span<const float> logits, uint32_t position) const {
  const float max = RowMax(logits);
  if (max == kNegativeInfinity) return 0;
  if (params_.temperature == 0) return static_cast<TokenId>(FirstAtLeast(logits, max));
  const Support support = FindSupport(logits, max);
  const double uniform = UniformAt(params_.seed, position);
  if (support.floor == kNegativeInfinity) return DrawFromAll(support.weights, logits, uniform);
  std::vector<std::pair<TokenId, float>> candidates;
  ForEachIn(support, logits, [&](TokenId id, float weight) { candidates.push_back({id, weight}); });
  return DrawFrom(candidates, uniform);
}

SampledToken Sampler::Sample(absl::Span<float> logits, uint32_t position,
                             std::optional<uint32_t> top_logprobs) {
  BATON_CHECK(logits.size() == vocab_size_);
  if (!top_logprobs.has_value()) {
    Adjust(logits);
    return SampledToken{Choose(logits, position)};
  }
  const std::vector<float> raw(logits.begin(), logits.end());
  Adjust(logits);
  return TokenLogprobs(raw, Choose(logits, position), *top_logprobs);
}

std::vector<std::pair<TokenId, double>> Sampler::Distribution(absl::Span<float> logits) const {
  BATON_CHECK(logits.size() == vocab_size_ && params_.temperature > 0);
  Adjust(logits);
  const float max = RowMax(logits);
  if (max == kNegativeInfinity) return {{0, 1.0}};
  std::vector<std::pair<TokenId, double>> result;
  double total = 0;
  ForEachIn(FindSupport(logits, max), logits, [&](TokenId id, float weight) {
    result.push_back({id, weight});
    total += weight;
  });
  for (auto& [id, probability] : result) probability /= total;
  return result;
}

}  // namespace baton
