#ifndef BATON_TESTS_SIMULATION_SCENARIO_H_
#define BATON_TESTS_SIMULATION_SCENARIO_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/simulated_system.h"

namespace baton {

// How often each fault has happened in each phase of the call it was aimed at.
class FaultCounts {
 public:
  FaultCounts() : counts_(FaultTable().size()) {}
  void Add(const InjectedFault& fault) {
    ++counts_[static_cast<size_t>(fault.row - FaultTable().data())][static_cast<int>(fault.phase)];
  }
  uint64_t of(size_t row, CallPhase phase) const { return counts_[row][static_cast<int>(phase)]; }

 private:
  std::vector<std::array<uint64_t, kCallPhases>> counts_;
};

// One run: sizes, delays, calls and faults are all drawn from the seed.
class Scenario {
 public:
  Scenario(uint64_t seed, bool trace, FaultCounts* counts);

  // The first thing that is not as it must be.
  absl::Status Run() { return checker_->RunAndCheck(); }
  uint64_t calls() const { return system_->answers().size(); }
  uint64_t faults() const { return faults_->injected().size(); }
  uint64_t recoveries() const;
  uint64_t completed() const;

 private:
  SimulatedSystem::Options DrawOptions(uint64_t seed, bool trace);
  void DrawEngines(SimulatedSystem::Options& options);
  void DrawCall(absl::Time start);
  void DrawFault();
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_.Next() % n); }
  template <typename T, size_t n>
  T OneOf(const T (&choices)[n]) {
    return choices[Below(n)];
  }

  SeededRandomSource random_;
  std::vector<CallSpec> specs_;
  std::unique_ptr<SimulatedSystem> system_;
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<Checker> checker_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SCENARIO_H_
