#ifndef BATON_TESTS_SIMULATION_CALL_BOARD_H_
#define BATON_TESTS_SIMULATION_CALL_BOARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/transfer_id.h"
#include "router/router_actions.h"

namespace baton {

// How far a call's attempt has come, as somebody sees it who sees everything.
enum class CallPhase : uint8_t {
  kQueued,       // waits for a pair
  kReserving,    // its decode leg is open
  kPrefilling,   // blocks are reserved
  kFirstLayers,  // the first layer range of its first chunk is computed
  kMidTransfer,  // a piece of its KV has arrived
  kCommit,       // the whole prompt is computed
  kFirstStep,    // landed: it waits for its first decode step
  kDecoding,     // that step has sampled
  kEnded,
};
inline constexpr int kCallPhases = 8;  // before the end

inline const char* CallPhaseName(CallPhase phase) {
  static constexpr const char* kNames[] = {"queued",       "reserving",    "prefilling",
                                           "first layers", "mid transfer", "commit",
                                           "first step",   "decoding",     "ended"};
  return kNames[static_cast<int>(phase)];
}

// Whom an attempt used, and when.
struct AttemptView {
  TransferId transfer_id;
  std::string prefill;  // instance id; empty: decode computes the prompt
  std::string decode;   // address
  absl::Time begin;
  absl::Time end = absl::InfiniteFuture();
};

// Where every call is: told by the processes as they go, read by what injects faults and what checks. Not
// part of what is simulated.
class CallBoard {
 public:
  struct Call {
    CallPhase phase = CallPhase::kQueued;
    std::vector<AttemptView> attempts;
    bool running() const { return !attempts.empty() && attempts.back().end == absl::InfiniteFuture(); }
  };

  void OnSubmitted(CallId id) {
    calls_[id];
    if (listener_) listener_(id, CallPhase::kQueued);
  }
  void OnAttempt(CallId id, AttemptView attempt) {
    Call& call = calls_[id];
    by_transfer_[attempt.transfer_id] = id;
    call.attempts.push_back(std::move(attempt));
    Set(id, call, CallPhase::kReserving);
  }
  // The attempt has come at least so far. Of earlier attempts it says nothing new.
  void OnPhase(const TransferId& transfer_id, CallPhase phase) {
    const auto it = by_transfer_.find(transfer_id);
    if (it == by_transfer_.end()) return;
    Call& call = calls_.at(it->second);
    if (call.running() && call.attempts.back().transfer_id == transfer_id && phase > call.phase) {
      Set(it->second, call, phase);
    }
  }
  void OnAttemptEnded(CallId id, absl::Time now) {
    Call& call = calls_.at(id);
    if (!call.running()) return;
    call.attempts.back().end = now;
    Set(id, call, CallPhase::kQueued);
  }
  void OnEnded(CallId id) { Set(id, calls_.at(id), CallPhase::kEnded); }

  const Call& call(CallId id) const { return calls_.at(id); }
  const std::map<CallId, Call>& calls() const { return calls_; }
  // Called whenever a call enters a phase.
  void Listen(std::function<void(CallId, CallPhase)> listener) { listener_ = std::move(listener); }

 private:
  void Set(CallId id, Call& call, CallPhase phase) {
    if (call.phase == CallPhase::kEnded) return;
    call.phase = phase;
    if (listener_) listener_(id, phase);
  }

  std::map<CallId, Call> calls_;
  std::map<TransferId, CallId> by_transfer_;
  std::function<void(CallId, CallPhase)> listener_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_CALL_BOARD_H_
