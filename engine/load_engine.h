#ifndef BATON_ENGINE_LOAD_ENGINE_H_
#define BATON_ENGINE_LOAD_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/kv/kv_geometry.h"

namespace baton {

struct EngineOptions {
  std::string model_path;
  uint32_t threads = 1;
  std::vector<uint32_t> cores;  // that computation keeps to, one for each thread; empty: not kept
  uint64_t weight_bytes = 0;    // most memory of packed weights; 0: no limit
  uint32_t context_tokens = 0;  // 0: the model's own
  uint64_t kv_bytes = 0;        // budget of the pools together
  uint32_t block_tokens = 16;
  uint32_t max_step_tokens = 512;  // rows that one sequence may append in one step
  uint32_t max_batch_rows = 1024;  // rows of a whole step; activations are allocated for these
  KvType kv_type = KvType::kF16;
  std::string kernels = "auto";  // see KernelChoices
  uint32_t layer_range = 6;      // layers that are pushed together
};

// NOT_FOUND, INVALID_ARGUMENT (file, option), UNIMPLEMENTED (architecture, processor), RESOURCE_EXHAUSTED
// (memory).
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineOptions& options);

}  // namespace baton

#endif  // BATON_ENGINE_LOAD_ENGINE_H_
