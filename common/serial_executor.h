#ifndef BATON_COMMON_SERIAL_EXECUTOR_H_
#define BATON_COMMON_SERIAL_EXECUTOR_H_

#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/executor.h"
#include "common/mutex.h"

namespace baton {

// One thread with a mailbox and timers. A round of its loop runs what the mailbox held, then the timers due
// at that moment, so neither starves the other.
//
// The destructor stops it. Whoever owns an executor stops it before destroying what its tasks point to.
class SerialExecutor final : public Executor {
 public:
  // Starts the thread, named `name` (the system keeps 15 characters). `clock` outlives the executor and runs
  // at the pace of real time; one that tests move by hand takes effect at the next Post.
  SerialExecutor(const std::string& name, const Clock* clock);
  ~SerialExecutor() override;
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  absl::Time Now() const override { return clock_->Now(); }
  bool Post(Task task) override;
  TimerId PostAt(absl::Time when, Task task) override;
  bool CancelTimer(TimerId id) override;

  // Refuses new tasks, runs those already in the mailbox, destroys the timers and ends the thread. May be
  // repeated; not from a task of this executor.
  void Stop();

 private:
  // Ordered by time, then by age.
  using TimerKey = std::pair<absl::Time, TimerId>;

  void Run();
  // Waits for something to do and moves the mailbox's content out. False when the thread is to end.
  bool NextBatch(std::vector<Task>* batch);
  void RunTimersDue(absl::Time now);

  // Constant.
  const Clock* const clock_;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Task> mailbox_ ABSL_GUARDED_BY(mutex_);
  TimerId next_timer_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<TimerKey, Task> timers_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<TimerId, absl::Time> timer_times_ ABSL_GUARDED_BY(mutex_);

  Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
  std::thread::id thread_id_;  // Constant once constructed.
};

}  // namespace baton

#endif  // BATON_COMMON_SERIAL_EXECUTOR_H_
