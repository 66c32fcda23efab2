#include "common/serial_executor.h"

#include <pthread.h>

#include <algorithm>

#include "common/check.h"

namespace baton {
namespace {

constexpr size_t kThreadNameLength = 15;
// The longest sleep without a look at the clock.
constexpr absl::Duration kLongestWait = absl::Minutes(1);

}  // namespace

SerialExecutor::SerialExecutor(const std::string& name, const Clock* clock) : clock_(clock) {
  MutexLock lock(&join_mutex_);
  thread_ = std::thread([this] { Run(); });
  thread_id_ = thread_.get_id();
  pthread_setname_np(thread_.native_handle(), name.substr(0, kThreadNameLength).c_str());
}

SerialExecutor::~SerialExecutor() { Stop(); }

bool SerialExecutor::Post(Task task) {
  MutexLock lock(&mutex_);
  if (stopping_) return false;
  mailbox_.push_back(std::move(task));
  wake_.Signal();
  return true;
}

Executor::TimerId SerialExecutor::PostAt(absl::Time when, Task task) {
  MutexLock lock(&mutex_);
  if (stopping_) return 0;
  const TimerId id = next_timer_id_++;
  const auto inserted = timers_.emplace(TimerKey(when, id), std::move(task)).first;
  timer_times_.emplace(id, when);
  if (inserted == timers_.begin()) wake_.Signal();
  return id;
}

bool SerialExecutor::CancelTimer(TimerId id) {
  Task cancelled;  // Destroyed after the lock: a task's destructor may call this executor.
  MutexLock lock(&mutex_);
  const auto found = timer_times_.find(id);
  if (found == timer_times_.end()) return false;
  const auto timer = timers_.find(TimerKey(found->second, id));
  BATON_CHECK(timer != timers_.end());
  cancelled = std::move(timer->second);
  timers_.erase(timer);
  timer_times_.erase(found);
  return true;
}

void SerialExecutor::Stop() {
  BATON_CHECK(std::this_thread::get_id() != thread_id_);
  std::map<TimerKey, Task> dropped;  // Destroyed after the lock, as above.
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    timer_times_.clear();
    dropped.swap(timers_);
    wake_.Signal();
  }
  MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void SerialExecutor::Run() {
  std::vector<Task> batch;
  while (NextBatch(&batch)) {
    for (Task& task : batch) {
      std::move(task)();
      task = nullptr;
    }
    batch.clear();
    RunTimersDue(clock_->Now());
  }
}

bool SerialExecutor::NextBatch(std::vector<Task>* batch) {
  MutexLock lock(&mutex_);
  while (mailbox_.empty() && !stopping_) {
    absl::Duration wait = kLongestWait;
    if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first.first - clock_->Now());
    if (wait <= absl::ZeroDuration()) break;
    wake_.WaitFor(&mutex_, wait);
  }
  batch->swap(mailbox_);
  return !(stopping_ && batch->empty());
}

void SerialExecutor::RunTimersDue(absl::Time now) {
  // One at a time, so that a task can still cancel a timer that is due but has not run.
  TimerId limit = 0;  // Timers made in this round wait for the next one.
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      if (limit == 0) limit = next_timer_id_;
      if (timers_.empty()) return;
      const auto [when, id] = timers_.begin()->first;
      if (when > now || id >= limit) return;
      task = std::move(timers_.begin()->second);
      timer_times_.erase(id);
      timers_.erase(timers_.begin());
    }
    std::move(task)();
  }
}

}  // namespace baton
