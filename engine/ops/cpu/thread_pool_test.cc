#include "engine/ops/cpu/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(ThreadPoolTest, EveryItemIsDoneOnce) {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    auto pool = ThreadPool::Start(threads);
    for (uint32_t items = 0; items < 60; ++items) {
      std::vector<std::atomic<int>> done(items);
      std::atomic<bool> known_threads = true;
      pool->For(items, 0, [&](WorkRange range, uint32_t thread) {
        if (thread >= threads) known_threads = false;
        for (uint32_t i = range.begin; i < range.end; ++i) ++done[i];
      });
      EXPECT_TRUE(known_threads);
      for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, ALoopSeesWhatTheOneBeforeWrote) {
  auto pool = ThreadPool::Start(3);
  std::vector<uint32_t> values(100);
  for (uint32_t round = 0; round < 500; ++round) {
    std::vector<uint32_t> next(values.size());
    pool->For(static_cast<uint32_t>(values.size()), 0, [&](WorkRange range, uint32_t) {
      for (uint32_t i = range.begin; i < range.end; ++i) next[i] = values[values.size() - 1 - i] + 1;
    });
    values.swap(next);
  }
  EXPECT_EQ(values, std::vector<uint32_t>(100, 500));
}

TEST(ThreadPoolTest, FewItemsStayWithTheCaller) {
  auto pool = ThreadPool::Start(4);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  pool->For(8, 8, [&](WorkRange range, uint32_t thread) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(thread, 0u);
    EXPECT_EQ(range.end - range.begin, 8u);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

// The caller's second piece ends only when another thread has taken one.
TEST(ThreadPoolTest, WorkersTakePart) {
  auto pool = ThreadPool::Start(2);
  std::atomic<uint32_t> helped{0};
  pool->For(8, 0, [&](WorkRange range, uint32_t thread) {
    if (thread == 0) {
      while (helped.load() == 0) std::this_thread::yield();
    } else {
      ++helped;
    }
  });
  EXPECT_GT(helped.load(), 0u);
}

TEST(ThreadPoolTest, ManyItemsDoNotOverflow) {
  auto pool = ThreadPool::Start(3);
  std::atomic<uint64_t> items{0};
  pool->For(4'000'000'000u, 0, [&](WorkRange range, uint32_t) { items += range.end - range.begin; });
  EXPECT_EQ(items.load(), 4'000'000'000u);
}

// The cores that this thread may run on.
std::vector<uint32_t> Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<uint32_t> cores;
  for (uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(ThreadPoolTest, ThreadsKeepToTheirCores) {
  const std::vector<uint32_t> cores = Cores();
  std::thread([&cores] {
    const auto pool = ThreadPool::Start(static_cast<uint32_t>(cores.size()), cores);
    pool->AdoptCaller();
    std::vector<std::vector<uint32_t>> seen(cores.size());  // by thread
    for (uint32_t round = 0; round < 100; ++round) {
      pool->For(static_cast<uint32_t>(4 * cores.size()), 1,
                [&](WorkRange, uint32_t thread) { seen[thread] = Cores(); });
    }
    EXPECT_EQ(seen[0], std::vector<uint32_t>{cores[0]});
    for (size_t thread = 1; thread < cores.size(); ++thread) {
      if (seen[thread].empty()) continue;  // the others were faster
      EXPECT_EQ(seen[thread], std::vector<uint32_t>{cores[thread]});
    }
  }).join();
  EXPECT_EQ(Cores(), cores);
}

TEST(ThreadPoolTest, CoresAreChecked) {
  const std::vector<uint32_t> cores = Cores();
  EXPECT_TRUE(ThreadPool::CheckCores({}, 7).ok());
  EXPECT_TRUE(ThreadPool::CheckCores(cores, static_cast<uint32_t>(cores.size())).ok());
  for (const std::vector<uint32_t>& wrong :
       {std::vector<uint32_t>{cores[0]}, {cores[0], cores[0]}, {cores[0], 100000}, {cores[0], 4000000000}}) {
    EXPECT_EQ(ThreadPool::CheckCores(wrong, 2).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace baton
