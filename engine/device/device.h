#ifndef BATON_ENGINE_DEVICE_DEVICE_H_
#define BATON_ENGINE_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace baton {

class Device;

// A piece of device memory. Not owning; never dereferenced above ops and transfer backends.
struct DeviceSpan {
  std::byte* data = nullptr;
  uint64_t bytes = 0;

  DeviceSpan subspan(uint64_t offset, uint64_t length) const { return {data + offset, length}; }
};

// Owns one allocation of a device. Move-only; freed with the last reference to it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::shared_ptr<std::byte> data, uint64_t bytes) : data_(std::move(data)), bytes_(bytes) {}
  DeviceBuffer(DeviceBuffer&&) = default;
  DeviceBuffer& operator=(DeviceBuffer&&) = default;

  DeviceSpan span() const { return {data_.get(), bytes_}; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<std::byte> data_;
  uint64_t bytes_ = 0;
};

// Where a model runs and its KV lives. Thread-safe. Copies complete before they return; ordering against
// steps is the caller's, by the states of KV blocks.
class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;
  // Zeroed memory, aligned to at least 64 bytes (2 MiB and huge pages for large ones). RESOURCE_EXHAUSTED
  // when there is none.
  virtual absl::StatusOr<DeviceBuffer> Allocate(uint64_t bytes) = 0;
  virtual void CopyToHost(DeviceSpan from, absl::Span<std::byte> to) = 0;
  virtual void CopyFromHost(absl::Span<const std::byte> from, DeviceSpan to) = 0;
};

std::unique_ptr<Device> CreateCpuDevice();

}  // namespace baton

#endif  // BATON_ENGINE_DEVICE_DEVICE_H_
