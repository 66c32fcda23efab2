#ifndef BATON_ENGINE_PLANNER_H_
#define BATON_ENGINE_PLANNER_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace baton {

// What the planner may know of a sequence.
struct PlannedSequence {
  uint32_t prompt_left = 0;  // prompt tokens not yet computed; 0 = the sequence decodes
  uint32_t decode_rows =
      0;  // with prompt_left == 0: rows it can use, 1 or, while it replays accepted tokens, more
};

struct PlannerLimits {
  uint32_t token_budget = 512;  // rows of one step, all sequences together, at least 1
  uint32_t chunk_tokens = 512;  // rows of one sequence
};

// Rows that each sequence gets in the next step, in the order of `sequences`, which is the order of arrival.
// A pure function, the same for both services.
//
// Every decoding sequence gets a row before any prompt gets one, so a prompt never stretches a decode step by
// more than the budget. Of what is left, half goes to the oldest prompt, which thus always advances, and the
// other half to the prompts with the fewest tokens left, which thus overtake a long one; what either half
// leaves over goes to the other.
std::vector<uint32_t> PlanRows(const std::vector<PlannedSequence>& sequences, const PlannerLimits& limits);

// Keeps a step within its bound in time by cutting the token budget: follows the measured time per row, so
// that a step of budget() rows is expected to take `target`. Used by one thread.
class ChunkBudget {
 public:
  // Budgets stay within [min_tokens, max_tokens]; the first one is `max_tokens`.
  ChunkBudget(absl::Duration target, uint32_t min_tokens, uint32_t max_tokens);

  uint32_t budget() const { return budget_; }
  void OnStep(uint32_t rows, absl::Duration took);

 private:
  const absl::Duration target_;
  const uint32_t min_tokens_;
  const uint32_t max_tokens_;
  uint32_t budget_;
};

}  // namespace baton

#endif  // BATON_ENGINE_PLANNER_H_
