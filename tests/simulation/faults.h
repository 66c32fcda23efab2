#ifndef BATON_TESTS_SIMULATION_FAULTS_H_
#define BATON_TESTS_SIMULATION_FAULTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/call_board.h"
#include "tests/simulation/fault_table.h"
#include "tests/simulation/simulated_system.h"

namespace baton {

// A fault that has happened.
struct InjectedFault {
  const FaultRow* row = nullptr;
  CallId call = 0;  // the one it was aimed at
  CallPhase phase = CallPhase::kQueued;
  std::string prefill;  // addresses: whom that call used, or would have
  std::string decode;
  absl::Time begin;
  absl::Time end;  // when all is well again, but for what it broke

  // The worker, or the worker at the end of the link to the router; empty when it was none.
  const std::string& worker() const;
};

// Lets faults happen. Each is aimed at a call: it waits until the call enters a phase, and hits whom the call
// uses at that time.
class Faults {
 public:
  struct Plan {
    const FaultRow* row = nullptr;
    CallId call = 0;
    CallPhase phase = CallPhase::kQueued;
    absl::Duration after;  // entering the phase
  };
  // The longest that any fault lasts.
  static constexpr absl::Duration kLongest = absl::Seconds(4);

  // `system` outlives this. `on_injected` is told of every fault as it begins.
  Faults(SimulatedSystem* system, std::function<void(const InjectedFault&)> on_injected);

  void Add(const Plan& plan) { plans_.push_back(plan); }
  const std::vector<InjectedFault>& injected() const { return injected_; }
  // The latest end of the faults so far that touch this worker, or its way to the router.
  absl::Time DisturbedUntil(const std::string& worker) const;
  // The latest end of all faults so far.
  absl::Time QuietAfter() const;

 private:
  void OnPhase(CallId call, CallPhase phase);
  void Inject(const Plan& plan);
  absl::Duration DrawTime();
  // The address that the call uses or, without one, some worker of the role; empty when there is none.
  std::string Victim(const std::string& used, v1::Role role);
  void Begin(InjectedFault& fault);
  void BeginOnWorker(InjectedFault& fault);
  void BeginOnRouter(InjectedFault& fault);
  void BeginOnLink(InjectedFault& fault);
  void BeginOnCall(InjectedFault& fault);
  // The drained process exits as soon as it is idle; `then` follows.
  void ExitWhenIdle(SimWorker* worker, std::function<void()> then);
  // The drained router exits as soon as it has no calls, and starts again; until then `fault` goes on.
  void ExitWhenDrained(SimRouter* router, size_t fault);
  // Unless it runs by then.
  void RestartRouterAt(absl::Time when);
  // At the fault's end: does `recover` unless the process has been replaced meanwhile.
  void AtEnd(const InjectedFault& fault, SimWorker* worker, std::function<void(SimWorker&)> recover);

  SimulatedSystem* const system_;
  SimWorld* const world_;
  const std::function<void(const InjectedFault&)> on_injected_;
  std::vector<Plan> plans_;
  std::vector<InjectedFault> injected_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_FAULTS_H_
