#ifndef BATON_COMMON_MUTEX_H_
#define BATON_COMMON_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace baton {

// A std::mutex that Clang's thread-safety analysis understands. Preferred over absl::Mutex, whose packaged
// library is not instrumented, so that the thread sanitizer would report false races through it.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for the length of a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A condition of a Mutex. Waits may end early: callers look at their condition again.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // Waits at most `limit`, on the steady clock. False when the time ran out.
  bool WaitFor(Mutex* mutex, absl::Duration limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    // An hour at the most: time_point arithmetic inside the library would overflow on an infinite duration.
    const auto until =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(std::min(limit, absl::Hours(1)));
    const std::cv_status result = condition_.wait_until(lock, until);
    lock.release();
    return result == std::cv_status::no_timeout;
  }

  void Signal() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace baton

#endif  // BATON_COMMON_MUTEX_H_
