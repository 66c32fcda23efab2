#include "engine/ops/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "common/check.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr int kSpins = 1000;       // some tens of microseconds
constexpr int kIdleYields = 2000;  // about a millisecond on an idle core
constexpr uint32_t kPieces = 4;    // of what is left of a lane

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Best effort: a core may have been taken from this process since it was checked, which only costs time.
void KeepTo(uint32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  static_cast<void>(::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set));
}

}  // namespace

absl::Status ThreadPool::CheckCores(absl::Span<const uint32_t> cores, uint32_t threads) {
  if (cores.empty()) return absl::OkStatus();
  if (cores.size() != threads) {
    return absl::InvalidArgumentError(
        StrCat("cores names ", cores.size(), " cores for ", threads, " threads, must name one for each"));
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  static_cast<void>(::sched_getaffinity(0, sizeof(allowed), &allowed));
  for (const uint32_t core : cores) {
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed)) {
      CPU_CLR(core, &allowed);  // a second thread does not get it
      continue;
    }
    return absl::InvalidArgumentError(
        StrCat("cores: ", core, " is named twice, or this process may not run there"));
  }
  return absl::OkStatus();
}

std::unique_ptr<ThreadPool> ThreadPool::Start(uint32_t threads, absl::Span<const uint32_t> cores) {
  BATON_CHECK(threads > 0 && (cores.empty() || cores.size() == threads));
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, cores));
  for (uint32_t thread = 1; thread < threads; ++thread) {
    pool->workers_.emplace_back([pool = pool.get(), thread] { pool->WorkerLoop(thread); });
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::AdoptCaller() {
  if (cores_.empty() || caller_ == std::this_thread::get_id()) return;
  caller_ = std::this_thread::get_id();
  KeepTo(cores_[0]);
}

void ThreadPool::For(uint32_t items, uint32_t grain, Work work) {
  if (items == 0) return;
  grain = std::max(1u, grain);
  if (threads_ == 1 || items <= grain) {
    work({0, items}, 0);
    return;
  }
  const uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  // No piece is being computed now. A thread that is still looking at the last loop must not take the new end
  // for the old one: every lane is closed before its end changes.
  for (Lane& lane : lanes_) lane.next.store(uint64_t{loop} << 32 | UINT32_MAX, std::memory_order_relaxed);
  work_ = &work;
  grain_.store(grain, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  for (uint32_t thread = 0; thread < threads_; ++thread) {
    const uint64_t begin = uint64_t{items} * thread / threads_;
    const uint64_t end = uint64_t{items} * (thread + 1) / threads_;
    lanes_[thread].end.store(static_cast<uint32_t>(end), std::memory_order_release);
    lanes_[thread].next.store(uint64_t{loop} << 32 | begin, std::memory_order_release);
  }
  loop_.store(loop, std::memory_order_release);
  loop_.notify_all();
  TakePieces(loop, 0);
  for (int spins = 0; done_.load(std::memory_order_acquire) != items; ++spins) {
    spins < kSpins ? Pause() : static_cast<void>(::sched_yield());
  }
}

// Pieces shrink with what is left, so that threads end together.
bool ThreadPool::TakePiece(uint32_t loop, Lane& lane, uint32_t thread) {
  uint64_t next = lane.next.load(std::memory_order_acquire);
  WorkRange range;
  do {
    if (next >> 32 != loop) return false;
    range.begin = static_cast<uint32_t>(next);
    const uint32_t end = lane.end.load(std::memory_order_acquire);
    if (range.begin >= end) return false;
    const uint32_t left = end - range.begin;
    range.end =
        range.begin + std::min(left, std::max(grain_.load(std::memory_order_relaxed), left / kPieces));
  } while (!lane.next.compare_exchange_weak(next, uint64_t{loop} << 32 | range.end, std::memory_order_acq_rel,
                                            std::memory_order_acquire));
  (*work_)(range, thread);
  done_.fetch_add(range.end - range.begin, std::memory_order_acq_rel);
  return true;
}

void ThreadPool::TakePieces(uint32_t loop, uint32_t thread) {
  for (uint32_t i = 0; i < threads_; ++i) {
    while (TakePiece(loop, lanes_[(thread + i) % threads_], thread)) {
    }
  }
}

void ThreadPool::WorkerLoop(uint32_t thread) {
  if (!cores_.empty()) KeepTo(cores_[thread]);
  for (uint32_t seen = 0;;) {
    for (int waits = 0; loop_.load(std::memory_order_acquire) == seen; ++waits) {
      if (waits < kSpins) {
        Pause();
      } else if (waits < kSpins + kIdleYields) {
        ::sched_yield();
      } else {
        loop_.wait(seen, std::memory_order_acquire);
      }
    }
    if (stopping_.load(std::memory_order_relaxed)) return;
    seen = loop_.load(std::memory_order_acquire);
    TakePieces(seen, thread);
  }
}

}  // namespace baton
