#include "engine/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check.h"
#include "engine/sampling/row_scan.h"

namespace baton {
namespace {

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

std::vector<TokenLogprob> Greatest(absl::Span<const float> logits, uint32_t count) {
  std::vector<TokenLogprob> top;
  if (count == 0) return top;
  const float least = std::max(KthGreatest(logits, count), std::numeric_limits<float>::lowest());
  ForEachAtLeast(logits, least, [&](TokenId id, float logit) { top.push_back({id, logit}); });
  std::sort(top.begin(), top.end(), [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  });
  if (top.size() > count) top.resize(count);
  return top;
}

}  // namespace

SampledToken TokenLogprobs(absl::Span<const float> logits, TokenId token, uint32_t top_count) {
  BATON_CHECK(token < logits.size());
  SampledToken result{token, kNegativeInfinity, {}};
  const float max = RowMax(logits);
  if (max == kNegativeInfinity) return result;
  const double log_sum = max + std::log(SoftmaxWeights(max, 1).Sum(logits));
  const auto logprob = [&](float logit) {
    if (std::isnan(logit)) return kNegativeInfinity;
    return static_cast<float>(std::min(logit, std::numeric_limits<float>::max()) - log_sum);
  };
  result.logprob = logprob(logits[token]);
  result.top = Greatest(logits, top_count);
  for (TokenLogprob& entry : result.top) entry.logprob = logprob(entry.logprob);
  return result;
}

}  // namespace baton
