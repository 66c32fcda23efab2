#ifndef BATON_ENGINE_MODEL_TRANSFORMER_H_
#define BATON_ENGINE_MODEL_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/kv/kv_pools.h"
#include "engine/model/model_geometry.h"
#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/batch.h"
#include "engine/ops/ops.h"

namespace baton {

// A decoder-only transformer (llama, gemma3) written over ops, with its weights and activations. Used by one
// thread at a time, which is also the only one that uses its Ops.
//
//   Forward(batch)  ->  Logits(rows) as often as wanted  ->  Forward(next batch) ...
class Transformer {
 public:
  // Steps have at most `max_rows` rows. `file`, `device` and `ops` outlive the transformer.
  // RESOURCE_EXHAUSTED when the device has no room, UNIMPLEMENTED for a tensor type that the ops cannot
  // compute with.
  static absl::StatusOr<std::unique_ptr<Transformer>> Load(const ModelFile& file, const ModelConfig& config,
                                                           Device* device, Ops* ops, uint32_t max_rows);

  // Computes the rows of `batch`, whose tables are of `pools`; the batch stays until the next Forward.
  // `kv_written(layer)` is called when the KV of every row of that layer is in the pools, layer by layer in
  // order.
  void Forward(const Batch& batch, const KvPools& pools, absl::FunctionRef<void(uint32_t layer)> kv_written);

  // Logits of rows of the last batch, at most logits_rows() at once: out[rows.size(), vocab].
  void Logits(absl::Span<const uint32_t> rows, absl::Span<float> out);
  uint32_t logits_rows() const { return logits_rows_; }

 private:
  struct Layer {
    std::vector<std::unique_ptr<Weight>> owned;
    AttentionWeights attention;
    MlpWeights mlp;
  };

  Transformer(const ModelConfig& config, Device* device, Ops* ops)
      : config_(config), device_(device), ops_(ops) {}
  absl::Status LoadWeights(const ModelFile& file);
  absl::StatusOr<Layer> LoadLayer(const ModelFile& file, uint32_t index);
  absl::Status AllocateActivations(uint32_t max_rows);

  const ModelConfig config_;
  Device* const device_;
  Ops* const ops_;
  uint32_t logits_rows_ = 0;

  std::unique_ptr<Weight> embedding_;
  std::unique_ptr<Weight> output_norm_;
  std::unique_ptr<Weight> head_matrix_;
  HeadWeights head_;
  std::vector<Layer> layers_;

  DeviceBuffer hidden_;    // [max_rows, hidden]
  DeviceBuffer query_;     // [max_rows, heads * head_dim]
  DeviceBuffer attended_;  // [max_rows, heads * head_dim]
  DeviceBuffer logits_;    // [logits_rows, vocab]
};

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_TRANSFORMER_H_
