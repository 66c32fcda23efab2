#ifndef BATON_ENGINE_SEQUENCE_H_
#define BATON_ENGINE_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "engine/kv/kv_pools.h"
#include "engine/planner.h"
#include "engine/sampling/sampler.h"
#include "engine/token.h"

namespace baton {

// What a request asks of a worker, checked.
struct SequenceSpec {
  std::vector<TokenId> prompt;  // never empty
  std::vector<TokenId> output;  // already accepted: replayed, never sampled again
  SamplingParams sampling;
  std::vector<TokenId> stop_ids;
  uint32_t max_tokens = 1;  // of the whole answer
  std::optional<uint32_t> logprobs;
  std::optional<uint32_t> prompt_logprobs;
};

// One request's tokens, KV blocks and sampler on one worker, from its first prompt chunk to its last token.
// What is computed always runs from the start: the KV of tokens [0, computed()) is in the pools. Owned by one
// job, used by one thread at a time; must not be destroyed while a step that it is part of runs.
class Sequence {
 public:
  enum class Finish { kNone, kStop, kLength };

  Sequence(SequenceSpec spec, uint32_t vocab_size);

  // Tokens of prompt and answer together, known by now; and once `more` have been sampled, or as many as may
  // be.
  uint32_t known_tokens() const { return static_cast<uint32_t>(tokens_.size()); }
  uint32_t TokensAfter(uint32_t more) const;

  void TakeKv(SequenceKv kv) { kv_ = std::move(kv); }
  const SequenceKv& kv() const { return kv_; }
  SequenceKv& mutable_kv() { return kv_; }
  // Gives its blocks back: everything known is to be computed again, nothing sampled again.
  void DropKv();

  // The prompt's KV came by a handoff.
  void OnPromptLanded() { computed_ = prompt_tokens(); }
  // A token that was sampled elsewhere.
  void Append(TokenId token);

  PlannedSequence Planned() const;
  // The next `rows` tokens, sampled when they are the last known ones and `may_sample`. Valid until the next
  // call that changes this sequence.
  SequenceStep MakeStep(uint32_t rows, bool may_sample);
  // The step of MakeStep(rows) ran; `sampled`, if any, becomes the next token.
  void OnStepDone(uint32_t rows, const std::optional<SampledToken>& sampled);

  // Whether the answer has ended with its latest token.
  Finish finish() const;

  uint32_t prompt_tokens() const { return static_cast<uint32_t>(spec_.prompt.size()); }
  uint32_t output_tokens() const { return static_cast<uint32_t>(tokens_.size()) - prompt_tokens(); }
  uint32_t computed() const { return computed_; }
  uint32_t prompt_left() const { return prompt_tokens() - std::min(computed_, prompt_tokens()); }
  bool prompt_computed() const { return prompt_left() == 0; }
  const SequenceSpec& spec() const { return spec_; }

 private:
  const SequenceSpec spec_;
  std::vector<TokenId> tokens_;  // prompt, then output
  uint32_t computed_ = 0;
  SequenceKv kv_;
  Sampler sampler_;
};

}  // namespace baton

#endif  // BATON_ENGINE_SEQUENCE_H_
