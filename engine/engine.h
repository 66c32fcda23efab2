#ifndef BATON_ENGINE_ENGINE_H_
#define BATON_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/kv/kv_pools.h"
#include "engine/kv/ranges.h"
#include "engine/sampling/sampler.h"

namespace baton {

// Which kernels a row runs through. Rows of a prompt are kPrefill wherever they run; sampled tokens, replayed
// ones too, are kDecode.
enum class Phase : uint8_t { kPrefill, kDecode };

// One sequence's part of a step: `tokens` are appended at `position`, their KV is written, and the last row
// may be sampled. Everything pointed to outlives the step.
struct SequenceStep {
  Phase phase = Phase::kPrefill;
  absl::Span<const TokenId> tokens;  // [rows], at most KvPools::max_step_tokens
  uint32_t position = 0;             // of tokens[0] in the sequence
  const SequenceKv* kv = nullptr;
  Sampler* sampler = nullptr;               // null: the last row is not sampled
  std::optional<uint32_t> logprobs;         // top n of the sampled token, 0 = its own only
  std::optional<uint32_t> prompt_logprobs;  // top n for what follows each row
  std::optional<TokenId>
      next_token;  // what follows the last row, for its prompt logprobs; absent at the prompt's end
};

struct StepPlan {
  std::vector<SequenceStep> sequences;
  uint32_t rows() const {
    uint32_t rows = 0;
    for (const SequenceStep& sequence : sequences) rows += static_cast<uint32_t>(sequence.tokens.size());
    return rows;
  }
};

struct SequenceResult {
  std::optional<SampledToken> sampled;
  std::vector<SampledToken> prompt_logprobs;  // [rows whose next token is known], `id` is that next token
};

// In the order of the plan.
struct StepResult {
  std::vector<SequenceResult> sequences;
};

// What peers must agree on, and what they are told.
struct EngineInfo {
  std::string model_name;
  std::string fingerprint;  // weights, tokenizer, KV element type and layout; equal means KV may be exchanged
  std::string prefill_recipe;  // numeric recipe of each phase: equal ids give equal bits
  std::string decode_recipe;
  std::string kernels;  // the level of instructions that computes
  bool has_chat_template = false;
  uint32_t vocab_size = 0;
  uint32_t context_tokens = 0;
  uint32_t layers = 0;
  std::vector<LayerRange> layer_ranges;  // pushed together, in order; they cover all layers
  double load_seconds = 0;
  uint64_t weight_bytes = 0;
};

// Runs steps of one model on one device. The facade of engine/: services see nothing behind it.
// Execute is called by one thread at a time; everything else is immutable or thread-safe.
class Engine {
 public:
  // Called on Execute's thread as soon as the KV of every row is in the pools for these layers and may be
  // read there.
  using LayersDone = std::function<void(LayerRange)>;

  virtual ~Engine() = default;
  virtual const EngineInfo& info() const = 0;
  virtual KvPools& kv() const = 0;
  // The same bits for a row whatever else is in the plan, however its prompt is cut into steps, whatever the
  // threads.
  virtual StepResult Execute(const StepPlan& plan, const LayersDone& layers_done) = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_ENGINE_H_
