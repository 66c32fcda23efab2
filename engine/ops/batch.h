#ifndef BATON_ENGINE_OPS_BATCH_H_
#define BATON_ENGINE_OPS_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/token.h"

namespace baton {

// The rows that one sequence appends in a step.
struct BatchSequence {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t position = 0;  // of the first row's token in the sequence
  // [cache group][slot], block ids. Token t is in slot (t / block_tokens) % slots.
  std::vector<absl::Span<const uint32_t>> tables;
};

// What a step computes, as ops see it: rows, not requests. A sequence occurs once. Values on the host; what a
// device needs of them it copies when the step begins.
struct Batch {
  std::vector<TokenId> tokens;           // [rows]
  std::vector<BatchSequence> sequences;  // in the order of their rows, which they cover

  uint32_t rows() const { return static_cast<uint32_t>(tokens.size()); }
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_BATCH_H_
