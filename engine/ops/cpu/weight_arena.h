#ifndef BATON_ENGINE_OPS_CPU_WEIGHT_ARENA_H_
#define BATON_ENGINE_OPS_CPU_WEIGHT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/device.h"

namespace baton {

// Memory for weights, handed out once and kept to the end: many tensors share large pages. `limit` bytes at
// most; 0: as many as the device has. Used by one thread.
class WeightArena {
 public:
  WeightArena(Device* device, uint64_t limit) : device_(device), limit_(limit) {}

  // Zeroed, aligned to 64 bytes. RESOURCE_EXHAUSTED beyond the limit or without room.
  absl::StatusOr<std::byte*> Allocate(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  Device* const device_;
  const uint64_t limit_;
  std::vector<DeviceBuffer> chunks_;
  uint64_t used_ = 0;   // of the last chunk
  uint64_t bytes_ = 0;  // handed out
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_WEIGHT_ARENA_H_
