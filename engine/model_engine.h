#ifndef BATON_ENGINE_MODEL_ENGINE_H_
#define BATON_ENGINE_MODEL_ENGINE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/engine.h"
#include "engine/kv/kv_pools.h"
#include "engine/model/transformer.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/batch.h"
#include "engine/ops/ops.h"

namespace baton {

// What a ModelEngine is made of, in the order of their making; each may use those before it.
struct ModelParts {
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<KvPools> pools;
  std::unique_ptr<Transformer> transformer;
  uint32_t max_batch_rows = 0;
};

// The engine of a real model: turns a plan into one batch of rows, and rows of logits into results.
class ModelEngine final : public Engine {
 public:
  ModelEngine(EngineInfo info, ModelParts parts);

  const EngineInfo& info() const override { return info_; }
  KvPools& kv() const override { return *parts_.pools; }
  StepResult Execute(const StepPlan& plan, const LayersDone& layers_done) override;

 private:
  // A row of the batch whose logits are read, and for what.
  struct WantedRow {
    uint32_t row = 0;
    const SequenceStep* step = nullptr;
    SequenceResult* result = nullptr;
    std::optional<TokenId> next;  // of the prompt; set when its log probability is wanted
    bool sample = false;
  };

  void CheckPlan(const StepPlan& plan) const;
  Batch MakeBatch(const StepPlan& plan) const;
  void Read(const WantedRow& wanted, absl::Span<float> logits) const;

  const EngineInfo info_;
  const ModelParts parts_;
  std::vector<float> logits_;  // [Transformer::logits_rows, vocab]
};

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_ENGINE_H_
