#ifndef BATON_ENGINE_OPS_CPU_MACHINE_ROOF_H_
#define BATON_ENGINE_OPS_CPU_MACHINE_ROOF_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace baton {

// What this machine does at best just now, to hold measured speeds against. Both take some tens of
// milliseconds on `threads` threads of their own.

// Bytes per second when every thread reads its part of `bytes` in order; the best of eight passes.
// RESOURCE_EXHAUSTED when there is no such memory.
absl::StatusOr<double> ReadRoof(uint32_t threads, uint64_t bytes);

// Operations per second, two for each multiply-add, of all threads together on values in registers, in the
// widest instructions that the processor has outside AMX. 0 where it has none that are known here.
struct MultiplyRate {
  double int8_operations = 0;
  double f32_operations = 0;
};
MultiplyRate MultiplyRoof(uint32_t threads);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_MACHINE_ROOF_H_
