#ifndef BATON_CLIENT_REQUEST_OPTIONS_H_
#define BATON_CLIENT_REQUEST_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "common/option.h"

namespace baton {

// What a user may say about one answer: every field of GenerateRequest but its input. A value that stands at
// its default is left out of the request, which means the same.
struct RequestOptions {
  std::string model;
  uint32_t max_tokens = 0;  // 0: the server's choice.
  uint32_t min_tokens = 0;
  double temperature = 1;
  double top_p = 1;
  uint32_t top_k = 0;
  double min_p = 0;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  double repetition_penalty = 1;
  std::string seed;                     // A whole number; empty: random.
  std::vector<std::string> logit_bias;  // ID=BIAS
  std::vector<std::string> stop;
  std::vector<std::string> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop = false;
  absl::Duration time_limit = absl::ZeroDuration();  // Zero: none.
  bool keep_special_tokens = false;
  bool parse_control_tokens = false;
};

// Its options; `options` outlives them.
std::vector<Option> Describe(RequestOptions* options);

// Writes them into `request`, over what is there. INVALID_ARGUMENT names a text that is no number.
absl::Status ApplyTo(const RequestOptions& options, v1::GenerateRequest& request);

}  // namespace baton

#endif  // BATON_CLIENT_REQUEST_OPTIONS_H_
