#ifndef BATON_ENGINE_OPS_CPU_REFERENCE_OPS_H_
#define BATON_ENGINE_OPS_CPU_REFERENCE_OPS_H_

#include <memory>

#include "engine/device/device.h"
#include "engine/ops/ops.h"

namespace baton {

// Plain float32 arithmetic on weights that are expanded row by row: the truth that faster kernels are
// compared with. Nothing of it is shared with them.
std::unique_ptr<Ops> CreateReferenceOps(Device* device, uint32_t threads);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_REFERENCE_OPS_H_
