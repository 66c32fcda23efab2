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
  // A request that could not be placed for long waits for this worker's room: nobody else takes it.
  bool fenced = false;
  std::string instance_id;
  std::string fingerprint;
  std::string prefill_recipe;
  std::string decode_recipe;
  uint32_t block_tokens = 1;
  uint64_t kv_capacity_tokens = 0;
  uint32_t max_running = 0;
  uint32_t reserve_tokens = 0;  // decode: how many tokens yet to come it reserves for at first; 0: all
  // What this router has given it and not yet got back.
  uint32_t assigned_requests = 0;
  uint64_t assigned_tokens =
      0;                       // prefill: prompt tokens not yet computed; decode: tokens with blocks reserved
  uint64_t depth_tokens = 0;   // prefill: the same, as they count against the depth
  uint64_t last_assigned = 0;  // a counter: the order of assignments
};

struct PairRequest {
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;  // of an answer that has begun
  uint32_t total_tokens = 0;   // prompt + max_tokens
  // Workers, and (prefill, decode) pairs, that failed this request or are known to fail: taken only when
  // nothing else is left.
  std::vector<std::string> suspects;
  std::vector<std::pair<std::string, std::string>> suspect_pairs;
  // Of an answer that has begun: it goes on within the fingerprint, and if it can at the same recipes. Empty:
  // any.
  std::string fingerprint;
  std::string prefill_recipe;
  std::string decode_recipe;
};

struct PickerOptions {
  uint32_t aggregate_below = 0;  // prompts of fewer tokens than this are computed by decode itself
  // A prefill worker takes a prompt while it has fewer tokens than this to compute. One prompt counts three
  // quarters of it at most: the worker shares its steps, so short prompts need not wait for a huge one.
  uint64_t prefill_depth_tokens = 2048;
};

struct Pair {
  std::string prefill;  // empty: decode computes the prompt
  std::string decode;
  v1::ServingPath path = v1::SERVING_PATH_UNSPECIFIED;
  std::string path_reason;
  uint64_t depth_tokens = 0;     // that the prompt counts against the prefill worker's depth
  uint64_t reserved_tokens = 0;  // for which the decode worker reserves blocks
  std::string fingerprint;
  std::string prefill_recipe;  // of the worker that computes the prompt
  std::string decode_recipe;
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
  std::string awaited;          // with kWait: the worker that is likely to have room first
  uint64_t largest_tokens = 0;  // with kTooLarge: what the largest pool holds
};

// Chooses where a request goes: filter by role, state, fingerprint and room; score by load; take the best,
// the least recently assigned among equals. The best decode worker that a prefill worker can reach comes
// before one that would have to compute the prompt itself. A pure function.
PickResult PickPair(const std::vector<WorkerSnapshot>& workers, const PairRequest& request,
                    const PickerOptions& options);

// Tokens that `tokens` occupy on a worker with blocks of `block_tokens`.
uint64_t RoundUpToBlocks(uint64_t tokens, uint32_t block_tokens);

}  // namespace baton

#endif  // BATON_ROUTER_PAIR_PICKER_H_
