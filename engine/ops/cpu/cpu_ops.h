#ifndef BATON_ENGINE_OPS_CPU_CPU_OPS_H_
#define BATON_ENGINE_OPS_CPU_CPU_OPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/ops.h"

namespace baton {

struct CpuOpsOptions {
  uint32_t threads = 1;         // the caller's included
  std::vector<uint32_t> cores;  // that they keep to, one each; empty: not kept. See ThreadPool::CheckCores
  uint64_t weight_limit_bytes = 0;  // of packed weights together; 0: no limit
};

// The fast ops of the CPU: weights packed once for `kernels`, activations quantised to int8 for each 32
// values, before QKV and the head twice (Activations::Grain::kFine; these two carry half of the
// distance to float32 and a third of the multiplications), one recipe ("q8x32-v3") for every level and for
// any number of rows. A model with bfloat16 matrices has the recipe of the level's Bf16Arithmetic: "q8x32-v3"
// with kFloat, "q8x32-v3-bf16-pairs", "q8x32-v3-bf16-tiles".
std::unique_ptr<Ops> CreateCpuOps(Device* device, const KernelTable& kernels, const CpuOpsOptions& options);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_CPU_OPS_H_
