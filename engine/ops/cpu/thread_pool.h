#ifndef BATON_ENGINE_OPS_CPU_THREAD_POOL_H_
#define BATON_ENGINE_OPS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace baton {

// A half-open range of work items.
struct WorkRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// The caller's thread and `threads - 1` more, which run the same function in step. Waits spin first, since
// steps follow each other within microseconds, then yield, so that another process may have the core, and an
// idle pool sleeps. Run is called by one thread at a time.
class ThreadPool {
 public:
  // `threads` > 0 counts the caller.
  static std::unique_ptr<ThreadPool> Start(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }

  // Calls work(0) on the caller and work(1) ... work(threads - 1) elsewhere; returns when all have returned.
  void Run(absl::FunctionRef<void(uint32_t thread)> work);
  // Inside Run, by every thread: returns once all have come here; what they wrote before is visible to all.
  void Barrier();

  // The part of `items` that is a thread's. The same for the same counts, so that a core meets its data
  // again.
  WorkRange Share(uint32_t items, uint32_t thread) const {
    return {static_cast<uint32_t>(uint64_t{items} * thread / threads_),
            static_cast<uint32_t>(uint64_t{items} * (thread + 1) / threads_)};
  }

 private:
  explicit ThreadPool(uint32_t threads) : threads_(threads) {}
  void WorkerLoop(uint32_t thread);

  const uint32_t threads_;
  std::vector<std::thread> workers_;

  alignas(64) std::atomic<uint32_t> runs_{0};  // begun so far; a worker waits for the next
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> barriers_{0};            // passed so far
  const absl::FunctionRef<void(uint32_t)>* work_ = nullptr;  // published by runs_; null asks workers to end
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_THREAD_POOL_H_
