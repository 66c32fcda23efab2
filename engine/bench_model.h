#ifndef BATON_ENGINE_BENCH_MODEL_H_
#define BATON_ENGINE_BENCH_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/kv/kv_pools.h"
#include "engine/model/transformer.h"
#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/batch.h"
#include "engine/ops/ops.h"

namespace baton {

struct BenchModelOptions {
  std::string model;
  std::string kernels = "auto";
  uint32_t threads = 2;
  std::vector<uint32_t> cores;  // as EngineOptions::cores
  uint32_t context_tokens = 2304;
  uint32_t step_tokens = 512;  // of one prompt, at once
  uint64_t kv_bytes = uint64_t{768} << 20;
};

// A model below the facade of the engine, where whole steps can be timed and logits be read: what llama.cpp's
// llama_decode does, logits on the host included, sampling not. Used by one thread.
class BenchModel {
 public:
  struct Timing {
    uint64_t tokens = 0;
    absl::Duration took;
  };

  static absl::StatusOr<std::unique_ptr<BenchModel>> Load(const BenchModelOptions& options);

  // A prompt of `tokens` tokens in steps of step_tokens, to the logits of its last row.
  absl::StatusOr<Timing> Prefill(uint32_t tokens);
  // `steps` steps in which each of `streams` sequences of `depth` tokens appends one, to their logits.
  // Sequences are computed once, untimed, and begin again at `depth` with every call.
  absl::StatusOr<Timing> Decode(uint32_t depth, uint32_t streams, uint32_t steps);
  // visit(row, logits) for every row of one sequence, in order.
  using VisitRow = absl::FunctionRef<absl::Status(uint32_t row, absl::Span<const float> logits)>;
  absl::Status Logits(const std::vector<TokenId>& tokens, VisitRow visit);

  const ModelConfig& config() const { return config_; }
  const Ops& ops() const { return *ops_; }
  const std::string& kernels() const { return kernels_; }  // the level in use

 private:
  BenchModel() = default;
  absl::StatusOr<SequenceKv> Reserve(uint32_t tokens);
  void Forward(const Batch& batch);
  BatchSequence MakePart(const SequenceKv& kv, uint32_t first_row, uint32_t rows, uint32_t position) const;
  void Append(const SequenceKv& kv, absl::Span<const TokenId> tokens, uint32_t position);
  std::vector<TokenId> Tokens(uint32_t count, uint32_t seed) const;

  std::unique_ptr<ModelFile> file_;
  ModelConfig config_;
  std::string kernels_;
  uint32_t step_tokens_ = 0;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<KvPools> pools_;
  std::unique_ptr<Transformer> transformer_;
  Batch batch_;
  std::vector<float> logits_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<SequenceKv>> prepared_;  // by depth and streams
};

}  // namespace baton

#endif  // BATON_ENGINE_BENCH_MODEL_H_
