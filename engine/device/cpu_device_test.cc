#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/device/device.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(CpuDeviceTest, MemoryIsZeroedAndAligned) {
  auto device = CreateCpuDevice();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{100}, (uint64_t{2} << 20) - 1,
                               uint64_t{2} << 20, (uint64_t{4} << 20) + 1}) {
    auto buffer = device->Allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(buffer->bytes(), bytes);
    const uint64_t alignment = bytes < (uint64_t{2} << 20) ? 64 : uint64_t{2} << 20;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->span().data) % alignment, 0u);
    EXPECT_TRUE(std::all_of(buffer->span().data, buffer->span().data + bytes,
                            [](std::byte b) { return b == std::byte{0}; }));
    if (bytes > 0) buffer->span().data[bytes - 1] = std::byte{1};
  }
}

TEST(CpuDeviceTest, RefusesWhatCannotBe) {
  auto device = CreateCpuDevice();
  for (const uint64_t bytes : {~uint64_t{0}, uint64_t{1} << 62}) {
    EXPECT_EQ(device->Allocate(bytes).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(CpuDeviceTest, CopiesThereAndBack) {
  auto device = CreateCpuDevice();
  auto buffer = device->Allocate(16);
  ASSERT_TRUE(buffer.ok());
  std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  device->CopyFromHost(bytes, buffer->span().subspan(4, 3));
  std::vector<std::byte> back(5);
  device->CopyToHost(buffer->span().subspan(3, 5), absl::MakeSpan(back));
  EXPECT_EQ(back,
            (std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{0}}));
}

TEST(CpuDeviceTest, ABufferLivesUntilItsOwnerGoes) {
  DeviceBuffer kept;
  {
    auto device = CreateCpuDevice();
    kept = *device->Allocate(uint64_t{3} << 20);
  }
  kept.span().data[0] = std::byte{7};
  EXPECT_EQ(kept.span().data[0], std::byte{7});
}

}  // namespace
}  // namespace baton
