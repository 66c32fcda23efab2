#ifndef BATON_TESTS_SUPPORT_MANUAL_EXECUTOR_H_
#define BATON_TESTS_SUPPORT_MANUAL_EXECUTOR_H_

#include <deque>
#include <map>
#include <utility>

#include "common/executor.h"
#include "common/fake_clock.h"
#include "common/mutex.h"

namespace baton {

// An executor that runs nothing until a test says so, in the test's own thread. Tasks may be posted from any
// thread.
class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(FakeClock* clock) : clock_(clock) {}

  absl::Time Now() const override { return clock_->Now(); }

  bool Post(Task task) override {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    return true;
  }

  TimerId PostAt(absl::Time when, Task task) override {
    MutexLock lock(&mutex_);
    timers_.emplace(std::pair(when, ++last_timer_), std::move(task));
    return last_timer_;
  }

  bool CancelTimer(TimerId id) override {
    MutexLock lock(&mutex_);
    return std::erase_if(timers_, [id](const auto& timer) { return timer.first.second == id; }) > 0;
  }

  // Runs the oldest task. False when there was none.
  bool RunOne() {
    Task task;
    {
      MutexLock lock(&mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    std::move(task)();
    return true;
  }

  // Runs tasks, and those that they post, until none is left.
  void RunAll() {
    while (RunOne()) {
    }
  }

  // Moves the clock by `step` and on the way runs each timer at its time, with all the tasks that it leads
  // to.
  void Advance(absl::Duration step) {
    const absl::Time end = clock_->Now() + step;
    RunAll();
    while (next_timer() <= end) {
      Task task;
      {
        MutexLock lock(&mutex_);
        auto first = timers_.begin();
        if (first->first.first > clock_->Now()) clock_->Set(first->first.first);
        task = std::move(first->second);
        timers_.erase(first);
      }
      std::move(task)();
      RunAll();
    }
    clock_->Set(end);
  }

  absl::Time next_timer() const {
    MutexLock lock(&mutex_);
    return timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first.first;
  }

 private:
  FakeClock* const clock_;
  mutable Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<absl::Time, TimerId>, Task> timers_ ABSL_GUARDED_BY(mutex_);
  TimerId last_timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_MANUAL_EXECUTOR_H_
