#ifndef BATON_ENGINE_OPS_CPU_CPU_OPS_H_
#define BATON_ENGINE_OPS_CPU_CPU_OPS_H_

#include <cstdint>
#include <memory>

#include "engine/device/device.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/ops.h"

namespace baton {

// The fast ops of the CPU: weights packed once for `kernels`, activations quantised to int8 for each 32
// values, one recipe ("q8x32-v1") for every level and for any number of rows. `threads` includes the caller.
std::unique_ptr<Ops> CreateCpuOps(Device* device, const KernelTable& kernels, uint32_t threads);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_CPU_OPS_H_
