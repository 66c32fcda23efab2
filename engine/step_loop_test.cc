#include "engine/step_loop.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "common/serial_executor.h"
#include "common/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/support/manual_executor.h"

namespace baton {
namespace {

// Writes down what the loop asks of it.
class RecordingBody final : public StepLoopBody {
 public:
  bool Step() override {
    if (steps_left == 0) return false;
    --steps_left;
    log.push_back("step");
    if (on_step) on_step();
    return true;
  }
  absl::Time NextTimer() override { return next_timer; }
  void OnTimer() override {
    log.push_back("timer");
    next_timer = absl::InfiniteFuture();
  }
  void OnTurned() override { ++turns; }

  int steps_left = 0;
  absl::Time next_timer = absl::InfiniteFuture();
  std::function<void()> on_step;
  int turns = 0;
  std::vector<std::string> log;
};

class StepLoopTest : public testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  RecordingBody body_;
  StepLoop loop_{&executor_, &body_};
};

TEST_F(StepLoopTest, StepsUntilThereIsNothingToCompute) {
  loop_.Post([&] { body_.steps_left = 3; });
  executor_.RunAll();
  EXPECT_EQ(body_.log, (std::vector<std::string>{"step", "step", "step"}));
  EXPECT_FALSE(executor_.RunOne());
  EXPECT_GE(body_.turns, 4);
}

TEST_F(StepLoopTest, EventsThatCameDuringAStepPrecedeTheNext) {
  body_.on_step = [&] {
    if (body_.steps_left != 1) return;
    for (const char* name : {"a", "b"}) loop_.Post([this, name] { body_.log.emplace_back(name); });
  };
  loop_.Post([&] { body_.steps_left = 2; });
  executor_.RunAll();
  EXPECT_EQ(body_.log, (std::vector<std::string>{"step", "a", "b", "step"}));
}

TEST_F(StepLoopTest, TimersFollowWhatTheBodySays) {
  loop_.Post([&] { body_.next_timer = clock_.Now() + absl::Seconds(5); });
  executor_.RunAll();
  loop_.Post([&] { body_.next_timer = clock_.Now() + absl::Seconds(2); });
  executor_.Advance(absl::Seconds(1));
  EXPECT_TRUE(body_.log.empty());
  executor_.Advance(absl::Seconds(1));
  EXPECT_EQ(body_.log, (std::vector<std::string>{"timer"}));
  executor_.Advance(absl::Seconds(10));
  EXPECT_EQ(body_.log.size(), 1);
}

TEST_F(StepLoopTest, ATimerThatIsNoLongerWantedDoesNotFire) {
  loop_.Post([&] { body_.next_timer = clock_.Now() + absl::Seconds(1); });
  executor_.RunAll();
  loop_.Post([&] { body_.next_timer = absl::InfiniteFuture(); });
  executor_.Advance(absl::Seconds(10));
  EXPECT_TRUE(body_.log.empty());
}

TEST(StepLoop, TimersRunBetweenTheStepsOfABusyLoop) {
  SteadyClock clock;
  RecordingBody body;
  SerialExecutor executor("loop", &clock);
  StepLoop loop(&executor, &body);
  Mutex mutex;
  CondVar changed;
  bool over = false;
  body.on_step = [&] {
    // Steps for as long as it takes the timer to come through.
    if (std::find(body.log.begin(), body.log.end(), "timer") == body.log.end()) return;
    body.steps_left = 0;
    MutexLock lock(&mutex);
    over = true;
    changed.SignalAll();
  };
  loop.Post([&] {
    body.steps_left = 1 << 30;
    body.next_timer = clock.Now() + absl::Milliseconds(1);
  });
  {
    MutexLock lock(&mutex);
    while (!over) ASSERT_TRUE(changed.WaitFor(&mutex, absl::Seconds(20)));
  }
  executor.Stop();
  EXPECT_EQ(body.log.back(), "step");
}

TEST_F(StepLoopTest, RefusesEventsOnceItsExecutorHasStopped) {
  SteadyClock clock;
  SerialExecutor executor("loop", &clock);
  StepLoop loop(&executor, &body_);
  executor.Stop();
  EXPECT_FALSE(loop.Post([] { FAIL(); }));
}

}  // namespace
}  // namespace baton
