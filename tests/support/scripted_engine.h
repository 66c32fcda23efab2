#ifndef BATON_TESTS_SUPPORT_SCRIPTED_ENGINE_H_
#define BATON_TESTS_SUPPORT_SCRIPTED_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/engine.h"
#include "engine/kv/kv_pools.h"
#include "tests/support/byte_tokenizer.h"

namespace baton {

// An engine without weights whose answers depend on every byte of KV: computing a token writes a digest of
// (token, position, layer) into K and V of every head, and sampling sums all KV that the model would attend
// to, each cell weighted by its place. So a lost, late, misplaced or foreign byte changes the answer. Two
// cache groups: full attention (layers 0 and 2) and a sliding window (layers 1 and 3). The vocabulary is
// ByteTokenizer's.
class ScriptedEngine : public Engine {
 public:
  struct Options {
    uint32_t block_tokens = 16;
    uint64_t kv_bytes = 4 << 20;
    uint32_t context_tokens = 1024;
    uint32_t window_tokens = 48;
    uint32_t max_step_tokens = 64;
    uint32_t end_every = 0;  // about one sampled token in so many is the end-of-answer token; 0: none is
    bool samples = false;    // draws from logits made of the KV with the request's own sampler
  };

  explicit ScriptedEngine(const Options& options);

  const EngineInfo& info() const override { return info_; }
  KvPools& kv() const override { return *pools_; }
  StepResult Execute(const StepPlan& plan, const LayersDone& layers_done) override;

  // The two halves of Execute, for a caller that lets simulated time pass between layer ranges.
  void ComputeLayers(const StepPlan& plan, LayerRange layers);
  StepResult Sample(const StepPlan& plan) const;

  // The whole answer to a prompt, computed without any KV cache: what every path through the system must
  // give. `sampling` matters with `samples`.
  static std::vector<TokenId> ExpectedAnswer(const Options& options, const std::vector<TokenId>& prompt,
                                             uint32_t max_tokens, const SamplingParams& sampling = {});

 private:
  SampledToken SampleOne(const SequenceStep& step) const;

  const Options options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<KvPools> pools_;
  EngineInfo info_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_SCRIPTED_ENGINE_H_
