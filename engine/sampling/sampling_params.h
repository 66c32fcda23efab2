#ifndef BATON_ENGINE_SAMPLING_SAMPLING_PARAMS_H_
#define BATON_ENGINE_SAMPLING_SAMPLING_PARAMS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/token.h"

namespace baton {

// How one request's tokens are drawn. The default is the model's own distribution. A plain value.
struct SamplingParams {
  double temperature = 1;        // 0 takes the most likely token
  double top_p = 1;              // keeps the most likely tokens that together have this probability
  double min_p = 0;              // drops tokens less likely than this times the most likely one
  double presence_penalty = 0;   // subtracted from the logit of every token in the output
  double frequency_penalty = 0;  // the same, times how often it is there
  double repetition_penalty =
      1;               // divides positive and multiplies negative logits of tokens in prompt or output
  uint32_t top_k = 0;  // keeps the k most likely tokens and those equal to the last; 0 is off
  uint64_t seed = 0;
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logits of these tokens; each id once
  uint32_t min_tokens = 0;                            // stop_ids are masked while the output is shorter
  std::vector<TokenId> stop_ids;
};

// INVALID_ARGUMENT when a value is out of its range, with the field's public name, the value and the limit.
absl::Status Validate(const SamplingParams& params, uint32_t vocab_size);

}  // namespace baton

#endif  // BATON_ENGINE_SAMPLING_SAMPLING_PARAMS_H_
