#ifndef BATON_TESTS_SIMULATION_CHECKER_H_
#define BATON_TESTS_SIMULATION_CHECKER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "router/call_spec.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/simulated_system.h"

namespace baton {

// What must be true whatever fails, checked while the system runs and after it. Times are simulated.
//
//   every call ends, once, within its deadline and within kSettle of the last fault
//   its tokens are those of a run without faults: all of them, or the first so many with a status that the
//     faults under it permit; usage counts each once
//   a call that has ended is gone from every worker that runs and is reachable within kFreed
//   a worker that went silent is noticed by the router within kNoticed
//   in the end every block is FREE, nobody holds or remembers anything, no timer runs
class Checker {
 public:
  static constexpr absl::Duration kFreed = absl::Seconds(1);
  static constexpr absl::Duration kNoticed = absl::Seconds(3);
  static constexpr absl::Duration kSettle = absl::Seconds(10);

  // All outlive this. `slowest_message`: on a link without faults.
  Checker(SimulatedSystem* system, const Faults* faults, absl::Duration slowest_message)
      : system_(system), faults_(faults), slowest_message_(slowest_message) {}

  void OnSubmitted(CallId call, const CallSpec& spec, bool queue_is_small) {
    calls_[call] = {spec, queue_is_small};
  }
  void OnFault(const InjectedFault& fault);
  void OnCallEnded(CallId call, const std::vector<SimRouter::LegView>& legs);

  // Runs the system until nothing is left to happen; the first thing that is not as it must be.
  absl::Status RunAndCheck();

 private:
  struct Call {
    CallSpec spec;
    bool queue_is_small = false;  // it may be refused
  };

  void CheckFreed(CallId call, const SimRouter::LegView& leg);
  void CheckNoticed(const InjectedFault& fault, const SimRouter* router);
  absl::Status RunUntilAnswered();
  absl::Status CheckAnswer(CallId id, const Call& call) const;
  absl::Status CheckWhole(const ClientAnswer& answer, const Call& call, size_t expected) const;
  // Why the status may be seen by this call's client; empty when it may not.
  std::string Permitted(CallId id, const Call& call, const absl::Status& status) const;
  // The faults that hit whom this call used, while it used them.
  std::vector<const InjectedFault*> Under(CallId id) const;
  bool EveryDecodeWorkerWasHit() const;
  void Fail(const std::string& what);

  SimulatedSystem* const system_;
  const Faults* const faults_;
  const absl::Duration slowest_message_;
  std::map<CallId, Call> calls_;
  absl::Status failure_;  // the first, seen while running
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_CHECKER_H_
