#ifndef BATON_ROUTER_CALL_LEG_H_
#define BATON_ROUTER_CALL_LEG_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "router/worker_registry.h"

namespace baton {

// How long a leg may go without a sign of life, or of headway. Each is cut to half of the time that the
// request has left, so that another attempt still has a chance, but never below `shortest`.
struct LegLimits {
  absl::Duration silence = absl::Milliseconds(2500);  // without a message; workers speak every 500 ms
  absl::Duration stall = absl::Seconds(5);            // without a step, while the leg waits for steps
  absl::Duration handoff = absl::Seconds(30);         // token 0 sampled -> KV landed
  absl::Duration shortest = absl::Seconds(1);
};

// One leg of an attempt, as the router sees it. A state machine without thread, socket or clock; owned by a
// GenerateCall.
//
//   prefill   CLOSED --Open--> COMPUTING --FirstToken--> PUSHING --Landed at decode--> IDLE
//   decode    CLOSED --Open--> RESERVING --Reserved----> AWAITING --Landed-----------> STEPPING
//             CLOSED --Open--> RESERVING --Reserved, it computes the prompt itself---> STEPPING
//   either    any but CLOSED --Close--> CLOSED
//
//   phase                 is lost when it
//   RESERVING, AWAITING   is silent
//   COMPUTING, STEPPING   is silent, or its worker takes no step
//   PUSHING               is silent, or the handoff takes too long
//   IDLE                  never: whatever becomes of it does not matter any more
class CallLeg {
 public:
  enum class Phase { kClosed, kReserving, kAwaiting, kComputing, kPushing, kStepping, kIdle };

  // `limits` outlives the leg.
  explicit CallLeg(const LegLimits* limits) : limits_(limits) {}

  // Names the worker and what the request counts there, before the leg is opened.
  void Assign(std::string worker, std::string instance_id, Assignment assignment);
  void Open(Phase phase, absl::Time now);
  void Enter(Phase phase, absl::Time now);
  // A message came: `steps` is the worker's count, with those messages that carry it.
  void OnMessage(absl::Time now) {
    heard_ = now;
    has_spoken_ = true;
  }
  void OnSteps(double steps, absl::Time now);
  void OnToken(absl::Time now) { moved_ = now; }
  // The prompt is computed: it does not count as waiting work any more.
  void ReleaseTokens() { assignment_.ReleaseTokens(); }
  // True when it was open. Gives back what it counted for.
  bool Close();

  // When it is lost if nothing happens, and how it is lost then.
  absl::Time lost_at(absl::Time deadline) const;
  absl::Status LossAt(absl::Time now, absl::Time deadline) const;

  Phase phase() const { return phase_; }
  bool has_spoken() const { return has_spoken_; }  // since it was opened
  bool open() const { return phase_ != Phase::kClosed; }
  bool assigned() const { return !worker_.empty(); }
  const std::string& worker() const { return worker_; }
  const std::string& instance_id() const { return instance_id_; }

 private:
  absl::Duration Cut(absl::Duration limit, absl::Time since, absl::Time deadline) const;
  absl::Time SilentAt(absl::Time deadline) const;
  absl::Time StalledAt(absl::Time deadline) const;

  const LegLimits* limits_;
  Phase phase_ = Phase::kClosed;
  std::string worker_;
  std::string instance_id_;
  Assignment assignment_;
  absl::Time heard_;  // the latest message
  bool has_spoken_ = false;
  absl::Time moved_;             // the latest headway within the phase
  std::optional<double> steps_;  // as last reported
};

}  // namespace baton

#endif  // BATON_ROUTER_CALL_LEG_H_
