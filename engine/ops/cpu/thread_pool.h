#ifndef BATON_ENGINE_OPS_CPU_THREAD_POOL_H_
#define BATON_ENGINE_OPS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace baton {

// A half-open range of work items.
struct WorkRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// The caller's thread and `threads - 1` more. Each has its own part of the items of a loop, the same part for
// the same count, so that a core meets its data again; a thread that is done takes over what others have not
// begun. So a loop never waits for a thread that has no core, only for pieces that are being computed.
//
// Workers look for the next loop, then yield, so that another process may have the core, and sleep when there
// is none. For is called by one thread at a time, not from inside a loop.
class ThreadPool {
 public:
  // `threads` > 0 counts the caller. Each thread keeps to its own of `cores`, which CheckCores accepts;
  // without any the system moves threads as it likes.
  static std::unique_ptr<ThreadPool> Start(uint32_t threads, absl::Span<const uint32_t> cores = {});
  // OK for no cores, or as many as threads, all different, on which this process may run. INVALID_ARGUMENT.
  static absl::Status CheckCores(absl::Span<const uint32_t> cores, uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }

  // Keeps the calling thread, the one that will call For, to the first core. Threads that it starts from then
  // on would stay there too. Cheap once done.
  void AdoptCaller();

  // Calls work(range, thread) for ranges that cover [0, items) once; `thread` < threads() is the one that
  // runs it. Returns when all is done, with all that was written visible. Fewer than `grain` items are not
  // worth a range of their own; up to that many in all are left to the caller.
  using Work = absl::FunctionRef<void(WorkRange range, uint32_t thread)>;
  void For(uint32_t items, uint32_t grain, Work work);

 private:
  // The part of one thread: `next` holds the loop's number in its upper half and the first item not taken in
  // the lower.
  struct alignas(64) Lane {
    std::atomic<uint64_t> next{0};
    std::atomic<uint32_t> end{0};
  };

  ThreadPool(uint32_t threads, absl::Span<const uint32_t> cores)
      : threads_(threads), cores_(cores.begin(), cores.end()), lanes_(threads) {}
  void WorkerLoop(uint32_t thread);
  // Takes pieces of loop `loop`, from the thread's own lane first, until none is left.
  void TakePieces(uint32_t loop, uint32_t thread);
  bool TakePiece(uint32_t loop, Lane& lane, uint32_t thread);

  const uint32_t threads_;
  const std::vector<uint32_t> cores_;  // [threads], or empty
  std::thread::id caller_;             // that is kept to its core
  std::vector<Lane> lanes_;            // [threads]
  std::vector<std::thread> workers_;

  alignas(64) std::atomic<uint32_t> loop_{0};  // the number of the latest loop; workers wait for it to change
  alignas(64) std::atomic<uint32_t> done_{0};  // items of it
  // Of the latest loop; stable while one of its pieces is being computed.
  const Work* work_ = nullptr;
  std::atomic<uint32_t> grain_{1};
  std::atomic<bool> stopping_{false};
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_THREAD_POOL_H_
