#ifndef BATON_ENGINE_SAMPLING_SAMPLER_H_
#define BATON_ENGINE_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "engine/sampling/logprobs.h"
#include "engine/sampling/row_scan.h"
#include "engine/sampling/sampling_params.h"
#include "engine/token.h"

namespace baton {

// Draws one request's tokens. Its state follows from the parameters and the tokens alone, and each draw from
// the state, the logits and the position, with the same bits on every machine: a request that moves samples
// as it would have.
//
// Order: repetition penalty (prompt and output), presence and frequency penalties (output), logit bias,
// masked stop ids, temperature, top_k, top_p, min_p. Temperature 0 takes the lowest id among the greatest
// logits after the mask. A NaN logit counts as -infinity; a row with nothing above -infinity yields token 0.
//
// Owned by one request, used by one thread at a time.
class Sampler {
 public:
  // `params` have passed Validate. Every token below vocab_size. The spans are read here only.
  Sampler(SamplingParams params, uint32_t vocab_size, absl::Span<const TokenId> prompt,
          absl::Span<const TokenId> output_so_far);

  // Appends a token to the output: one that Sample returned, or one that is replayed.
  void Observe(TokenId output);

  // Draws the token at `position`, its index in prompt + output. `logits` [vocab_size] are scratch: some are
  // modified. With `top_logprobs` the token comes with its log probability and that many most likely tokens,
  // all of them of the unmodified logits. Does not Observe.
  SampledToken Sample(absl::Span<float> logits, uint32_t position, std::optional<uint32_t> top_logprobs);

  // The probabilities of all tokens that Sample may draw from `logits`, ids ascending. Temperature > 0.
  std::vector<std::pair<TokenId, double>> Distribution(absl::Span<float> logits) const;

 private:
  // The tokens that are left after top_k, top_p and min_p: those whose logit is at least `floor`, of those
  // equal to it the ids up to `last_tied` only, and whose weight is at least `least_weight`.
  struct Support {
    SoftmaxWeights weights;
    float floor;
    TokenId last_tied;
    float least_weight;
  };

  bool penalizes() const;
  void Adjust(absl::Span<float> logits) const;
  TokenId Choose(absl::Span<const float> logits, uint32_t position) const;
  Support FindSupport(absl::Span<const float> logits, float max) const;
  void CutToTopP(absl::Span<const float> logits, Support& support) const;

  const SamplingParams params_;
  const uint32_t vocab_size_;
  // How often each token of prompt or output is in the output. Empty unless a penalty needs it.
  absl::flat_hash_map<TokenId, uint32_t> output_counts_;
  uint64_t output_tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_SAMPLING_SAMPLER_H_
