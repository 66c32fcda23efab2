#include "engine/planner.h"

#include <algorithm>
#include <numeric>

namespace baton {
namespace {

// Grants up to `budget` rows to the sequences at `order`, in that order; returns what is left of it.
uint32_t Grant(const std::vector<PlannedSequence>& sequences, const std::vector<size_t>& order,
               uint32_t chunk_tokens, uint32_t budget, std::vector<uint32_t>& rows) {
  for (size_t i : order) {
    const uint32_t more = std::min(budget, std::min(sequences[i].prompt_left, chunk_tokens) - rows[i]);
    rows[i] += more;
    budget -= more;
  }
  return budget;
}

}  // namespace

std::vector<uint32_t> PlanRows(const std::vector<PlannedSequence>& sequences, const PlannerLimits& limits) {
  std::vector<uint32_t> rows(sequences.size(), 0);
  uint32_t budget = limits.token_budget;
  std::vector<size_t> prompts;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].prompt_left > 0) {
      prompts.push_back(i);
    } else if (budget > 0 && sequences[i].decode_rows > 0) {
      rows[i] = 1;
      --budget;
    }
  }
  // Replays use what decoding leaves, before prompts: their clients have already seen tokens.
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (rows[i] == 0 || sequences[i].decode_rows < 2) continue;
    const uint32_t more = std::min(budget, std::min(sequences[i].decode_rows, limits.chunk_tokens) - 1);
    rows[i] += more;
    budget -= more;
  }
  if (prompts.empty() || budget == 0) return rows;

  std::vector<size_t> shortest = prompts;
  std::stable_sort(shortest.begin(), shortest.end(),
                   [&](size_t a, size_t b) { return sequences[a].prompt_left < sequences[b].prompt_left; });
  const uint32_t half = (budget + 1) / 2;
  budget = budget - half + Grant(sequences, {prompts.front()}, limits.chunk_tokens, half, rows);
  budget = Grant(sequences, shortest, limits.chunk_tokens, budget, rows);
  Grant(sequences, prompts, limits.chunk_tokens, budget, rows);
  return rows;
}

ChunkBudget::ChunkBudget(absl::Duration target, uint32_t min_tokens, uint32_t max_tokens)
    : target_(target), min_tokens_(min_tokens), max_tokens_(max_tokens), budget_(max_tokens) {}

void ChunkBudget::OnStep(uint32_t rows, absl::Duration took) {
  // A small step says little about the cost of a large one: what every step costs would count as cost per
  // row.
  if (rows < min_tokens_ || took <= absl::ZeroDuration()) return;
  const double fitting = rows * absl::FDivDuration(target_, took);
  // Shrinks at once, since the bound is for the others in the batch; grows slowly, since one fast step may be
  // luck.
  const double next = fitting < budget_ ? fitting : budget_ + std::min(fitting - budget_, budget_ / 8.0);
  budget_ = static_cast<uint32_t>(std::clamp<double>(next, min_tokens_, max_tokens_));
}

}  // namespace baton
