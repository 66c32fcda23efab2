#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "common/check.h"
#include "common/str_cat.h"
#include "engine/device/device.h"

namespace baton {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kCacheLine = 64;

absl::Status NoMemory(uint64_t bytes) {
  return absl::ResourceExhaustedError(StrCat("cpu device: cannot allocate ", bytes, " bytes"));
}

// Below the size of a huge page: from the heap.
absl::StatusOr<DeviceBuffer> AllocateSmall(uint64_t bytes) {
  const uint64_t rounded = (std::max<uint64_t>(bytes, 1) + kCacheLine - 1) / kCacheLine * kCacheLine;
  void* const data = std::aligned_alloc(kCacheLine, rounded);
  if (data == nullptr) return NoMemory(bytes);
  std::memset(data, 0, rounded);
  return DeviceBuffer(std::shared_ptr<std::byte>(static_cast<std::byte*>(data), std::free), bytes);
}

// Whole huge pages, mapped with one to spare so that the buffer can begin on a boundary. The kernel zeroes
// them on first touch, so memory that is never used costs nothing.
absl::StatusOr<DeviceBuffer> AllocateLarge(uint64_t bytes) {
  if (bytes > std::numeric_limits<uint64_t>::max() / 2) return NoMemory(bytes);
  const uint64_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const uint64_t mapped = rounded + kHugePage;
  void* const mapping =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return NoMemory(bytes);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapping);
  auto* const data = reinterpret_cast<std::byte*>((begin + kHugePage - 1) / kHugePage * kHugePage);
  ::madvise(data, rounded, MADV_HUGEPAGE);  // a hint; without huge pages it is only slower
  return DeviceBuffer(
      std::shared_ptr<std::byte>(data, [mapping, mapped](std::byte*) { ::munmap(mapping, mapped); }), bytes);
}

class CpuDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }

  absl::StatusOr<DeviceBuffer> Allocate(uint64_t bytes) override {
    return bytes < kHugePage ? AllocateSmall(bytes) : AllocateLarge(bytes);
  }

  void CopyToHost(DeviceSpan from, absl::Span<std::byte> to) override {
    BATON_CHECK(from.bytes == to.size());
    std::memcpy(to.data(), from.data, to.size());
  }

  void CopyFromHost(absl::Span<const std::byte> from, DeviceSpan to) override {
    BATON_CHECK(from.size() == to.bytes);
    std::memcpy(to.data, from.data(), from.size());
  }
};

}  // namespace

std::unique_ptr<Device> CreateCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace baton
