#ifndef BATON_ENGINE_OPS_CPU_WEIGHT_ARENA_H_
#define BATON_ENGINE_OPS_CPU_WEIGHT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/device.h"

namespace baton {

// Memory for weights, handed out once and kept to the end: many tensors share large pages. Used by one
// thread.
class WeightArena {
 public:
  explicit WeightArena(Device* device) : device_(device) {}

  // Zeroed, aligned to 64 bytes.
  absl::StatusOr<std::byte*> Allocate(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  Device* const device_;
  std::vector<DeviceBuffer> chunks_;
  uint64_t used_ = 0;   // of the last chunk
  uint64_t bytes_ = 0;  // handed out
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_WEIGHT_ARENA_H_
