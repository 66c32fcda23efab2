#include "engine/ops/cpu/thread_pool.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(ThreadPoolTest, EveryThreadRunsOnce) {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    auto pool = ThreadPool::Start(threads);
    std::vector<int> calls(threads, 0);
    for (int run = 0; run < 30; ++run) pool->Run([&](uint32_t thread) { ++calls[thread]; });
    EXPECT_EQ(calls, std::vector<int>(threads, 30));
  }
}

TEST(ThreadPoolTest, ABarrierShowsWhatTheOthersWrote) {
  constexpr uint32_t kThreads = 3;
  auto pool = ThreadPool::Start(kThreads);
  for (int run = 0; run < 50; ++run) {
    std::vector<uint32_t> first(kThreads), second(kThreads);
    pool->Run([&](uint32_t thread) {
      first[thread] = thread + 1;
      pool->Barrier();
      for (uint32_t value : first) second[thread] += value;
      pool->Barrier();
      first[thread] = second[(thread + 1) % kThreads];
    });
    EXPECT_EQ(first, std::vector<uint32_t>(kThreads, 6));
  }
}

TEST(ThreadPoolTest, SharesCoverTheItemsInOrder) {
  auto pool = ThreadPool::Start(3);
  for (const uint32_t items : {0u, 1u, 2u, 3u, 10u, 4'000'000'000u}) {
    uint32_t next = 0;
    for (uint32_t thread = 0; thread < 3; ++thread) {
      const WorkRange range = pool->Share(items, thread);
      EXPECT_EQ(range.begin, next);
      EXPECT_LE(range.end - range.begin, items / 3 + 1);
      next = range.end;
    }
    EXPECT_EQ(next, items);
  }
}

}  // namespace
}  // namespace baton
