#ifndef BATON_ROUTER_CALL_SPEC_H_
#define BATON_ROUTER_CALL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/types.pb.h"
#include "engine/token.h"

namespace baton {

// One client call, read and checked: everything the router needs to serve it.
struct CallSpec {
  std::string request_id;
  std::string tenant;  // whose share of the queue it takes; empty: nobody's in particular
  int32_t priority = 0;
  std::vector<TokenId> prompt;  // never empty
  v1::Sampling sampling;        // its seed is set
  uint32_t max_tokens = 1;
  uint32_t min_tokens = 0;
  std::vector<TokenId> stop_ids;  // the model's end-of-answer tokens included, unless ignored
  std::vector<std::string> stop_strings;
  bool include_stop = false;
  std::optional<absl::Duration> time_limit;  // since `arrival`
  std::optional<uint32_t> logprobs;
  std::optional<uint32_t> prompt_logprobs;
  bool return_tokens = false;
  bool skip_special_tokens = true;
  absl::Time arrival;       // read by the router
  absl::Duration tokenize;  // part of what has passed since
  absl::Time deadline;      // the client's, or the router's longest
};

}  // namespace baton

#endif  // BATON_ROUTER_CALL_SPEC_H_
