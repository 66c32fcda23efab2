#include "common/signals.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(SignalWatcher, CountsTermAndInt) {
  std::promise<void> first;
  std::promise<void> second;
  std::atomic<int> calls = 0;
  SignalWatcher watcher([&](int nth) {
    EXPECT_EQ(nth, ++calls);
    if (nth == 1) first.set_value();
    if (nth == 2) second.set_value();
  });
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  first.get_future().wait();
  ASSERT_EQ(kill(getpid(), SIGINT), 0);
  second.get_future().wait();
  EXPECT_EQ(calls, 2);
}

TEST(SignalWatcher, AClosedPeerIsAnErrorNotADeath) {
  const SignalWatcher watcher([](int) {});
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(SignalWatcherDeathTest, GivesTheSignalsBack) {
  EXPECT_EXIT(
      {
        {
          const SignalWatcher watcher([](int) {});
        }
        raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace baton
