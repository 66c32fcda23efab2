#ifndef BATON_ENGINE_SAMPLING_LOGPROBS_H_
#define BATON_ENGINE_SAMPLING_LOGPROBS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/token.h"

namespace baton {

struct TokenLogprob {
  TokenId id;
  float logprob;  // natural logarithm
};

// A token at one position and, where they were asked for, its log probability and the most likely tokens
// there.
struct SampledToken {
  TokenId id;
  float logprob = 0;              // 0 when none was asked for
  std::vector<TokenLogprob> top;  // most likely first, the lower id first among equals
};

// What the unmodified distribution softmax(logits) says about one position: the log probability of `token` (a
// sampled one, or the prompt's next one) and the `top_count` most likely tokens. `logits` [vocab] are raw and
// left as they are. A NaN logit counts as -infinity, whose log probability is -infinity too; such tokens are
// never among the top ones. token < logits.size().
SampledToken TokenLogprobs(absl::Span<const float> logits, TokenId token, uint32_t top_count);

}  // namespace baton

#endif  // BATON_ENGINE_SAMPLING_LOGPROBS_H_
