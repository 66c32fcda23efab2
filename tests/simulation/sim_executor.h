#ifndef BATON_TESTS_SIMULATION_SIM_EXECUTOR_H_
#define BATON_TESTS_SIMULATION_SIM_EXECUTOR_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "tests/simulation/sim_world.h"

namespace baton {

// A thread of a simulated process: what is posted runs in order, each a little later than it could. It can be
// stopped, as by SIGSTOP or a hung device; what is posted meanwhile waits.
class SimExecutor {
 public:
  // From a post to its run, with nothing before it: up to `longest_hop`.
  SimExecutor(SimWorld* world, absl::Duration longest_hop) : world_(world), longest_hop_(longest_hop) {}
  SimExecutor(const SimExecutor&) = delete;
  SimExecutor& operator=(const SimExecutor&) = delete;

  void Post(std::function<void()> event) {
    if (ended_) return;
    queue_.push_back(std::move(event));
    Wake();
  }
  // The thread itself gets that far at `when`: for the step it is in. Runs before what is posted.
  void Reach(absl::Time when, std::function<void()> event) {
    world_->At(when, [this, event = std::move(event)] {
      if (ended_) return;
      if (stops_ > 0) {
        reached_.push_back(event);
      } else {
        event();
      }
    });
  }

  // Busy in a step: what is posted waits until Release.
  void Hold() { held_ = true; }
  void Release() {
    held_ = false;
    Wake();
  }
  // Stops nest.
  void Stop() { ++stops_; }
  void Continue() {
    if (--stops_ > 0) return;
    for (std::function<void()>& event : std::exchange(reached_, {})) {
      Reach(world_->now(), std::move(event));
    }
    Wake();
  }
  // Nothing runs any more, what waits is dropped.
  void End() {
    ended_ = true;
    queue_.clear();
    reached_.clear();
  }

  SimWorld& world() { return *world_; }

 private:
  void Wake() {
    if (awake_ || ended_ || held_ || stops_ > 0 || queue_.empty()) return;
    awake_ = true;
    world_->After(world_->Between(absl::ZeroDuration(), longest_hop_), [this] {
      awake_ = false;
      if (ended_ || held_ || stops_ > 0) return;
      const std::function<void()> event = std::move(queue_.front());
      queue_.pop_front();
      event();
      Wake();
    });
  }

  SimWorld* const world_;
  const absl::Duration longest_hop_;
  std::deque<std::function<void()>> queue_;
  std::deque<std::function<void()>> reached_;  // while stopped
  int stops_ = 0;
  bool awake_ = false;  // a run is on its way
  bool held_ = false;
  bool ended_ = false;
};

// One timer of a machine: arm it after every event with the machine's next_timer().
class SimTimer {
 public:
  explicit SimTimer(SimExecutor* executor) : executor_(executor), state_(std::make_shared<State>()) {}
  ~SimTimer() { ++state_->generation; }
  SimTimer(const SimTimer&) = delete;
  SimTimer& operator=(const SimTimer&) = delete;

  void Arm(absl::Time when, std::function<void()> fire) {
    if (state_->when == when) return;
    state_->when = when;
    const uint64_t generation = ++state_->generation;
    if (when == absl::InfiniteFuture()) return;
    executor_->world().At(when, [state = state_, generation, executor = executor_, fire = std::move(fire)] {
      if (state->generation != generation) return;
      executor->Post([state, generation, fire] {
        if (state->generation != generation) return;
        state->when = absl::InfiniteFuture();
        fire();
      });
    });
  }
  bool armed() const { return state_->when != absl::InfiniteFuture(); }

 private:
  struct State {
    absl::Time when = absl::InfiniteFuture();
    uint64_t generation = 0;
  };
  SimExecutor* const executor_;
  const std::shared_ptr<State> state_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_EXECUTOR_H_
