#include "engine/ops/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
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

}  // namespace
}  // namespace baton
