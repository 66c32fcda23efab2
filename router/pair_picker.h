#ifndef BATON_ROUTER_PAIR_PICKER_H_
#define BATON_ROUTER_PAIR_PICKER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baton/v1/control.pb.h"
#include "baton/v1/types.pb.h"

namespace baton {

// A worker as the picker sees it.
struct WorkerSnapshot {
  std::string name;  // as the router was given it; unique
  v1::Role role = v1::ROLE_UNSPECIFIED;
  bool serving = false;
  std::string instance_id;
  std::string fingerprint;
  uint32_t block_tokens = 1;
  uint64_t kv_capacity_tokens = 0;
  uint32_t max_running = 0;
  // What this router has given it and not yet got back.
  uint32_t assigned_requests = 0;
  uint64_t assigned_tokens =
      0;                       // prefill: prompt tokens not yet computed; decode: tokens with blocks reserved
  uint64_t last_assigned = 0;  // a counter: the order of assignments
};

struct PairRequest {
  uint32_t prompt_tokens = 0;
  uint32_t total_tokens = 0;  // prompt + max_tokens
  // Workers, and (prefill, decode) pairs, that failed this request: taken only when nothing else is left.
  std::vector<std::string> suspects;
  std::vector<std::pair<std::string, std::string>> suspect_pairs;
};

struct PickerOptions {
  uint32_t aggregate_below = 0;  // prompts of fewer tokens than this are computed by decode itself
  uint64_t prefill_depth_tokens =
      2048;  // a prefill worker takes a prompt while it has fewer tokens than this to compute
};

struct Pair {
  std::string prefill;  // empty: decode computes the prompt
  std::string decode;
  v1::ServingPath path = v1::SERVING_PATH_UNSPECIFIED;
  std::string path_reason;
};

struct PickResult {
  enum Outcome {
    kPicked,
    kWait,      // workers that could serve it are busy
    kNoWorker,  // no decode worker serves
    kTooLarge,  // no serving decode worker's pool could ever hold it
  };
  Outcome outcome = kNoWorker;
  Pair pair;                    // with kPicked
  uint64_t largest_tokens = 0;  // with kTooLarge: what the largest pool holds
};

// Chooses where a request goes: filter by role, state, fingerprint and room; score by load; take the best,
// the least recently assigned among equals. A pure function.
PickResult PickPair(const std::vector<WorkerSnapshot>& workers, const PairRequest& request,
                    const PickerOptions& options);

// Tokens that `tokens` occupy on a worker with blocks of `block_tokens`.
uint64_t RoundUpToBlocks(uint64_t tokens, uint32_t block_tokens);

}  // namespace baton

#endif  // BATON_ROUTER_PAIR_PICKER_H_
