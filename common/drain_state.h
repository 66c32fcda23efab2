#ifndef BATON_COMMON_DRAIN_STATE_H_
#define BATON_COMMON_DRAIN_STATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/drain_sequence.h"
#include "common/mutex.h"

namespace baton {

// What every service of a process shares about its shutdown: services ask before they start work, a signal or
// an operator asks for the drain, GrpcServer runs it. Owned by main, outlives server and services. Safe to
// use from any thread.
class DrainState {
 public:
  struct Snapshot {
    ServingPhase phase = ServingPhase::kServing;
    size_t running = 0;  // Claims of Work that are alive.
  };

  // A claim of one piece of work: while it lives, a drain waits for it, up to its timeout.
  class Work {
   public:
    Work() = default;
    Work(Work&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    Work& operator=(Work&& other) noexcept;
    ~Work() { Release(); }

   private:
    friend class DrainState;
    explicit Work(DrainState* state) : state_(state) {}
    void Release();

    DrainState* state_ = nullptr;
  };

  // Called with the state's lock held, on each change of phase, and of `running` once a drain has begun: must
  // be short and must not call the state.
  using Listener = std::function<void(const Snapshot&)>;
  using ListenerId = uint64_t;

  DrainState() = default;
  DrainState(const DrainState&) = delete;
  DrainState& operator=(const DrainState&) = delete;

  // A claim, or UNAVAILABLE with reason DRAINING from kRefusing on.
  absl::StatusOr<Work> Admit();

  // Starts the drain; later calls change nothing.
  void RequestDrain();
  // Ends the waits of a drain that has begun, and starts one otherwise.
  void Hurry();

  // From the first request on, before the thread that runs the drain has passed to its first phase.
  bool requested() const;
  Snapshot snapshot() const;
  bool accepting() const { return snapshot().phase < ServingPhase::kRefusing; }

  // Calls `listener` at once with the present state. It is never called after Unsubscribe has returned.
  ListenerId Subscribe(Listener listener);
  void Unsubscribe(ListenerId id);

  // For the one thread that runs the drain: waits until `sequence` leaves the phase it is in, publishes the
  // phase it reached and returns it.
  ServingPhase AwaitNextPhase(const Clock& clock, DrainSequence* sequence);
  bool hurried() const;

 private:
  void NotifyListeners() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;
  Snapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  ListenerId next_listener_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<ListenerId, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
};

// The word for metrics, logs and the Drain stream: "SERVING", "NOT_SERVING", "REFUSING", "HANDING_BACK",
// "STOPPING".
std::string_view ServingPhaseName(ServingPhase phase);

}  // namespace baton

#endif  // BATON_COMMON_DRAIN_STATE_H_
