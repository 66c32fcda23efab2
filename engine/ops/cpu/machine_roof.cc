#include "engine/ops/cpu/machine_roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "engine/device/device.h"

namespace baton {
namespace {

constexpr int kPasses = 8;
constexpr uint64_t kAheadBytes = 4096;  // of prefetching, which the processor's own does not look
constexpr uint64_t kMultiplyRounds = 4'000'000;
constexpr int kChains = 12;  // independent accumulators, more than latency times ports

// From when all threads run to when the last one is done, in seconds.
template <typename Work>
double SecondsOf(uint32_t threads, Work work) {
  std::atomic<uint32_t> ready = 0;
  const auto run = [&](uint32_t thread) {
    for (++ready; ready != threads;) std::this_thread::yield();
    work(thread);
  };
  std::vector<std::thread> running;
  for (uint32_t thread = 1; thread < threads; ++thread) running.emplace_back(run, thread);
  while (ready + 1 != threads) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  run(0);
  for (std::thread& thread : running) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

using Words = uint64_t __attribute__((vector_size(16)));  // what every processor has

// All bits together, so that no load can be left out.
uint64_t ReadAll(const std::byte* from, uint64_t bytes) {
  constexpr uint64_t kLine = 64;
  Words sums[4] = {};
  for (uint64_t i = 0; i + kLine <= bytes; i += kLine) {
    __builtin_prefetch(from + i + kAheadBytes);
#pragma GCC unroll 4
    for (uint64_t j = 0; j < 4; ++j) {
      Words words;
      std::memcpy(&words, from + i + j * sizeof(words), sizeof(words));
      sums[j] ^= words;
    }
  }
  const Words all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1];
}

#if defined(__x86_64__)
// Twelve chains of one instruction. Named registers, so that nothing is left to spills.
#define BATON_CHAINS(instruction)                                                                     \
  instruction " %%zmm30, %%zmm31, %%zmm0\n\t" instruction " %%zmm30, %%zmm31, %%zmm1\n\t" instruction \
              " %%zmm30, %%zmm31, %%zmm2\n\t" instruction " %%zmm30, %%zmm31, %%zmm3\n\t" instruction \
              " %%zmm30, %%zmm31, %%zmm4\n\t" instruction " %%zmm30, %%zmm31, %%zmm5\n\t" instruction \
              " %%zmm30, %%zmm31, %%zmm6\n\t" instruction " %%zmm30, %%zmm31, %%zmm7\n\t" instruction \
              " %%zmm30, %%zmm31, %%zmm8\n\t" instruction " %%zmm30, %%zmm31, %%zmm9\n\t" instruction \
              " %%zmm30, %%zmm31, %%zmm10\n\t" instruction " %%zmm30, %%zmm31, %%zmm11\n\t"
#define BATON_CLOBBERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "memory"

// Zeros, so that sums stay finite; the operands are set inside, where no other code can meet them.
__attribute__((target("avx512f,avx512vnni"))) void DotChains(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    asm volatile(
        "vpxorq %%zmm30, %%zmm30, %%zmm30\n\tvpxorq %%zmm31, %%zmm31, %%zmm31\n\t" BATON_CHAINS("vpdpbusd")::
            : BATON_CLOBBERS, "xmm30", "xmm31");
  }
}

__attribute__((target("avx512f"))) void FmaChains(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    asm volatile("vpxorq %%zmm30, %%zmm30, %%zmm30\n\tvpxorq %%zmm31, %%zmm31, %%zmm31\n\t" BATON_CHAINS(
                     "vfmadd231ps")::
                     : BATON_CLOBBERS, "xmm30", "xmm31");
  }
}
#endif

}  // namespace

absl::StatusOr<double> ReadRoof(uint32_t threads, uint64_t bytes) {
  const std::unique_ptr<Device> device = CreateCpuDevice();
  absl::StatusOr<DeviceBuffer> buffer = device->Allocate(bytes);
  if (!buffer.ok()) return buffer.status();
  std::memset(buffer->span().data, 1, bytes);
  const uint64_t part = bytes / threads / 64 * 64;
  std::vector<uint64_t> sums(threads);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = SecondsOf(threads, [&](uint32_t thread) {
      sums[thread] ^= ReadAll(buffer->span().data + thread * part, part);
    });
    best = std::max(best, static_cast<double>(part * threads) / seconds);
  }
  volatile uint64_t kept = sums[0];
  static_cast<void>(kept);
  return best;
}

MultiplyRate MultiplyRoof(uint32_t threads) {
  MultiplyRate rate;
#if defined(__x86_64__)
  const double operations = 2.0 * kChains * kMultiplyRounds * threads;
  if (__builtin_cpu_supports("avx512f")) {
    rate.f32_operations = operations * 16 / SecondsOf(threads, [](uint32_t) { FmaChains(kMultiplyRounds); });
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    rate.int8_operations = operations * 64 / SecondsOf(threads, [](uint32_t) { DotChains(kMultiplyRounds); });
  }
#endif
  return rate;
}

}  // namespace baton
