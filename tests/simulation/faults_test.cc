// Runs the whole system under faults, seed by seed.
//
//   faults_test                   as many seeds as CI runs
//   faults_test --seed=N          one; with --trace, everything that happens in it
//   faults_test --seeds=N         that many

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/scenario.h"

namespace baton {
namespace {

// A sanitizer makes everything many times slower; the sizes of the runs say nothing there.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 300;
#else
constexpr uint64_t kSeeds = 7000;
#endif
// From this many seeds on, each fault must have happened in each phase this often.
constexpr uint64_t kEnoughSeeds = 7000;
constexpr uint64_t kTimesEach = 3;

struct Flags {
  uint64_t first = 1;
  uint64_t seeds = kSeeds;
  bool trace = false;
} flags;

void ExpectEveryFaultInEveryPhase(const FaultCounts& counts) {
  for (size_t row = 0; row < FaultTable().size(); ++row) {
    for (int phase = 0; phase < kCallPhases; ++phase) {
      const CallPhase at = static_cast<CallPhase>(phase);
      EXPECT_GE(counts.of(row, at), kTimesEach) << FaultTable()[row].name << " while " << CallPhaseName(at);
    }
  }
}

void Print(const FaultCounts& counts) {
  std::printf("%-32s", "");
  for (int phase = 0; phase < kCallPhases; ++phase) {
    std::printf("%13s", CallPhaseName(static_cast<CallPhase>(phase)));
  }
  std::printf("\n");
  for (size_t row = 0; row < FaultTable().size(); ++row) {
    std::printf("%-32s", FaultTable()[row].name);
    for (int phase = 0; phase < kCallPhases; ++phase) {
      std::printf("%13lu", static_cast<unsigned long>(counts.of(row, static_cast<CallPhase>(phase))));
    }
    std::printf("\n");
  }
}

TEST(Faults, WhateverFailsEveryCallEndsRightAndEveryBlockComesBack) {
  FaultCounts counts;
  uint64_t calls = 0, completed = 0, faults = 0, recoveries = 0;
  const std::clock_t begin = std::clock();
  for (uint64_t seed = flags.first; seed < flags.first + flags.seeds; ++seed) {
    Scenario scenario(seed, flags.trace, &counts);
    const absl::Status status = scenario.Run();
    ASSERT_TRUE(status.ok()) << status.message() << "\n  seed " << seed << "; to see it happen:\n"
                             << "  bazel run //tests/simulation:faults_test -- --trace --seed=" << seed;
    calls += scenario.calls();
    completed += scenario.completed();
    faults += scenario.faults();
    recoveries += scenario.recoveries();
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  Print(counts);
  std::printf(
      "%lu seeds, %.0f per second of CPU time; %lu calls, %lu whole answers, %lu faults, %lu recoveries\n",
      static_cast<unsigned long>(flags.seeds), static_cast<double>(flags.seeds) / seconds,
      static_cast<unsigned long>(calls), static_cast<unsigned long>(completed),
      static_cast<unsigned long>(faults), static_cast<unsigned long>(recoveries));
  if (flags.seeds >= kEnoughSeeds) ExpectEveryFaultInEveryPhase(counts);
}

// False for what is no flag of this test.
bool ReadFlag(absl::string_view argument) {
  if (argument == "--trace") return flags.trace = true;
  if (absl::ConsumePrefix(&argument, "--seeds=")) return absl::SimpleAtoi(argument, &flags.seeds);
  if (!absl::ConsumePrefix(&argument, "--seed=")) return false;
  flags.seeds = 1;
  return absl::SimpleAtoi(argument, &flags.first);
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (baton::ReadFlag(argv[i])) continue;
    std::fprintf(stderr, "unknown argument %s; there are --seed=N, --seeds=N and --trace\n", argv[i]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
