#include "engine/ops/cpu/thread_pool.h"

#include <sched.h>

#include "common/check.h"

namespace baton {
namespace {

constexpr int kSpins = 1000;       // some tens of microseconds
constexpr int kIdleYields = 2000;  // about a millisecond on an idle core

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::unique_ptr<ThreadPool> ThreadPool::Start(uint32_t threads) {
  BATON_CHECK(threads > 0);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads));
  for (uint32_t thread = 1; thread < threads; ++thread) {
    pool->workers_.emplace_back([pool = pool.get(), thread] { pool->WorkerLoop(thread); });
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  work_ = nullptr;
  runs_.fetch_add(1, std::memory_order_release);
  runs_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(absl::FunctionRef<void(uint32_t)> work) {
  if (threads_ == 1) {
    work(0);
    return;
  }
  work_ = &work;
  runs_.fetch_add(1, std::memory_order_release);
  runs_.notify_all();
  work(0);
  Barrier();  // the workers' last act for this run
}

void ThreadPool::Barrier() {
  if (threads_ == 1) return;
  const uint32_t passed = barriers_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    barriers_.store(passed + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; barriers_.load(std::memory_order_acquire) == passed; ++spins) {
    if (spins < kSpins) {
      Pause();
    } else {
      ::sched_yield();
    }
  }
}

void ThreadPool::WorkerLoop(uint32_t thread) {
  for (uint32_t seen = 0;; ++seen) {
    for (int waits = 0; runs_.load(std::memory_order_acquire) == seen; ++waits) {
      if (waits < kSpins) {
        Pause();
      } else if (waits < kSpins + kIdleYields) {
        ::sched_yield();
      } else {
        runs_.wait(seen, std::memory_order_acquire);
      }
    }
    if (work_ == nullptr) return;
    (*work_)(thread);
    Barrier();
  }
}

}  // namespace baton
