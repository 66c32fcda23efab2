#include "common/serial_executor.h"

#include <pthread.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/fake_clock.h"
#include "common/steady_clock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

// Returns once everything posted before has run.
void Flush(SerialExecutor* executor) {
  std::promise<void> done;
  ASSERT_TRUE(executor->Post([&done] { done.set_value(); }));
  done.get_future().wait();
}

// Flush, twice: timers due run after the mailbox of their round.
void FlushTimers(SerialExecutor* executor) {
  Flush(executor);
  Flush(executor);
}

class SerialExecutorTest : public testing::Test {
 protected:
  FakeClock clock_;
  SerialExecutor executor_{"mailbox", &clock_};
  std::vector<int> order_;  // Touched by tasks, read after a flush.
};

TEST_F(SerialExecutorTest, RunsInOrderOfPosting) {
  for (int i = 0; i < 100; ++i) executor_.Post([this, i] { order_.push_back(i); });
  Flush(&executor_);
  ASSERT_EQ(order_.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order_[i], i);
}

TEST_F(SerialExecutorTest, TakesMoveOnlyTasksAndNamesItsThread) {
  auto value = std::make_unique<int>(7);
  std::promise<std::string> name;
  executor_.Post([this, value = std::move(value), &name] {
    order_.push_back(*value);
    char text[16] = {};
    pthread_getname_np(pthread_self(), text, sizeof(text));
    name.set_value(text);
  });
  EXPECT_EQ(name.get_future().get(), "mailbox");
  EXPECT_EQ(order_, std::vector<int>{7});
}

TEST_F(SerialExecutorTest, ManyThreadsPostAndNoTaskOverlaps) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  int running = 0;
  int sum = 0;  // Unsynchronised on purpose: only tasks touch it.
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPosts; ++i) {
        executor_.Post([&] {
          EXPECT_EQ(++running, 1);
          ++sum;
          --running;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Flush(&executor_);
  EXPECT_EQ(sum, kThreads * kPosts);
}

TEST_F(SerialExecutorTest, TimersRunInOrderOfTimeThenOfPosting) {
  const absl::Time start = clock_.Now();
  executor_.PostAt(start + absl::Milliseconds(20), [this] { order_.push_back(3); });
  executor_.PostAt(start + absl::Milliseconds(10), [this] { order_.push_back(1); });
  executor_.PostAt(start + absl::Milliseconds(10), [this] { order_.push_back(2); });
  executor_.PostAt(start + absl::Milliseconds(30), [this] { order_.push_back(4); });
  executor_.PostAt(absl::InfiniteFuture(), [this] { order_.push_back(5); });
  FlushTimers(&executor_);
  EXPECT_TRUE(order_.empty());
  clock_.Advance(absl::Milliseconds(20));
  FlushTimers(&executor_);
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
}

TEST_F(SerialExecutorTest, ATimerInThePastRunsAndNeverStarvesTheMailbox) {
  // A task that sets itself again in the past for ever must let posts through.
  std::atomic<bool> stop = false;
  std::function<void()> again = [&] {
    if (!stop) executor_.PostAt(absl::InfinitePast(), [&] { again(); });
  };
  executor_.Post([&] { again(); });
  Flush(&executor_);
  Flush(&executor_);
  stop = true;
  FlushTimers(&executor_);
}

TEST_F(SerialExecutorTest, RealTimeTimersFireUnaided) {
  const SteadyClock clock;
  SerialExecutor executor("timers", &clock);
  std::promise<absl::Time> fired;
  const absl::Time when = clock.Now() + absl::Milliseconds(5);
  executor.PostAt(when, [&] { fired.set_value(clock.Now()); });
  EXPECT_GE(fired.get_future().get(), when);
}

TEST_F(SerialExecutorTest, AnEarlierTimerWakesAWaitForALaterOne) {
  const SteadyClock clock;
  SerialExecutor executor("timers", &clock);
  executor.PostAt(clock.Now() + absl::Seconds(50), [] { ADD_FAILURE(); });
  Flush(&executor);
  std::promise<void> fired;
  executor.PostAt(clock.Now() + absl::Milliseconds(1), [&] { fired.set_value(); });
  EXPECT_EQ(fired.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST_F(SerialExecutorTest, ACancelledTimerNeverRuns) {
  const Executor::TimerId id = executor_.PostAt(clock_.Now(), [] {});
  FlushTimers(&executor_);
  EXPECT_FALSE(executor_.CancelTimer(id)) << "it has run";
  const Executor::TimerId cancelled =
      executor_.PostAt(clock_.Now() + absl::Milliseconds(1), [this] { order_.push_back(1); });
  EXPECT_TRUE(executor_.CancelTimer(cancelled));
  EXPECT_FALSE(executor_.CancelTimer(cancelled));
  EXPECT_FALSE(executor_.CancelTimer(0));
  clock_.Advance(absl::Milliseconds(1));
  FlushTimers(&executor_);
  EXPECT_TRUE(order_.empty());
}

TEST_F(SerialExecutorTest, ATaskCancelsATimerThatIsAlreadyDue) {
  const absl::Time when = clock_.Now() + absl::Milliseconds(1);
  Executor::TimerId second = 0;
  bool cancelled = false;
  executor_.PostAt(when, [&] { cancelled = executor_.CancelTimer(second); });
  second = executor_.PostAt(when, [this] { order_.push_back(2); });
  clock_.Advance(absl::Milliseconds(1));
  FlushTimers(&executor_);
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(order_.empty());
}

TEST_F(SerialExecutorTest, StopRunsWhatWasPostedAndRefusesTheRest) {
  std::promise<void> release;
  std::future<void> released = release.get_future();
  bool refused_post = false;
  bool refused_timer = false;
  executor_.Post([&] { released.wait(); });
  for (int i = 0; i < 3; ++i) executor_.Post([this, i] { order_.push_back(i); });
  executor_.PostAt(clock_.Now() + absl::Seconds(1), [this] { order_.push_back(9); });
  std::thread stopper([&] { executor_.Stop(); });
  while (executor_.Post([] {})) {
  }
  refused_post = !executor_.Post([] {});
  refused_timer = executor_.PostAt(clock_.Now(), [] {}) == 0;
  release.set_value();
  stopper.join();
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(refused_post);
  EXPECT_TRUE(refused_timer);
  executor_.Stop();
}

TEST_F(SerialExecutorTest, StopDestroysTimersOutsideTheLock) {
  // The task owns something whose destructor calls the executor.
  struct Caller {
    SerialExecutor* executor;
    bool* destroyed;
    ~Caller() {
      executor->CancelTimer(1);
      *destroyed = true;
    }
  };
  bool destroyed = false;
  auto caller = std::make_unique<Caller>(Caller{&executor_, &destroyed});
  destroyed = false;
  executor_.PostAt(clock_.Now() + absl::Seconds(1), [caller = std::move(caller)] {});
  executor_.Stop();
  EXPECT_TRUE(destroyed);
}

TEST(SerialExecutorDeathTest, StopFromItsOwnTaskIsRefused) {
  EXPECT_DEATH(
      {
        const SteadyClock clock;
        SerialExecutor executor("self", &clock);
        executor.Post([&] { executor.Stop(); });
        std::promise<void>().get_future().wait();
      },
      "broken invariant");
}

}  // namespace
}  // namespace baton
