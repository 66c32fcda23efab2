#include "common/drain_state.h"

#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "common/error_details.h"
#include "common/steady_clock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

// Runs a drain to its end and returns the phases published.
std::vector<ServingPhase> RunDrain(DrainState* state, const DrainOptions& options) {
  const SteadyClock clock;
  DrainSequence sequence(options);
  std::vector<ServingPhase> phases;
  while (sequence.phase() != ServingPhase::kStopping)
    phases.push_back(state->AwaitNextPhase(clock, &sequence));
  return phases;
}

TEST(DrainState, AdmitsUntilItRefuses) {
  DrainState state;
  EXPECT_TRUE(state.accepting());
  {
    absl::StatusOr<DrainState::Work> work = state.Admit();
    ASSERT_TRUE(work.ok());
    EXPECT_EQ(state.snapshot().running, 1u);
    DrainState::Work moved = *std::move(work);
    DrainState::Work assigned;
    assigned = std::move(moved);
    EXPECT_EQ(state.snapshot().running, 1u);
  }
  EXPECT_EQ(state.snapshot().running, 0u);
  state.RequestDrain();
  EXPECT_EQ(RunDrain(&state, {}).back(), ServingPhase::kStopping);
  EXPECT_FALSE(state.accepting());
  const absl::Status refused = state.Admit().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), "DRAINING");
}

TEST(DrainState, WaitsForRunningWork) {
  DrainState state;
  std::optional<DrainState::Work> work = *state.Admit();
  // The last claim goes when the drain reports that it refuses new work.
  std::promise<void> refusing;
  state.Subscribe([&, told = false](const DrainState::Snapshot& snapshot) mutable {
    if (snapshot.phase != ServingPhase::kRefusing || told) return;
    told = true;
    refusing.set_value();
  });
  std::thread worker([&] {
    refusing.get_future().wait();
    work.reset();
  });
  state.RequestDrain();
  EXPECT_EQ(RunDrain(&state, {.timeout = absl::Hours(1)}),
            (std::vector<ServingPhase>{ServingPhase::kRefusing, ServingPhase::kStopping}));
  worker.join();
}

TEST(DrainState, DelayAndTimeoutPassInRealTime) {
  DrainState state;
  const absl::StatusOr<DrainState::Work> stuck = state.Admit();
  state.RequestDrain();
  EXPECT_EQ(RunDrain(&state, {.delay = absl::Milliseconds(2), .timeout = absl::Milliseconds(2)}),
            (std::vector<ServingPhase>{ServingPhase::kNotServing, ServingPhase::kRefusing,
                                       ServingPhase::kStopping}));
}

TEST(DrainState, AHurryEndsTheDelayFromAnotherThread) {
  DrainState state;
  std::promise<void> not_serving;
  state.Subscribe([&](const DrainState::Snapshot& snapshot) {
    if (snapshot.phase == ServingPhase::kNotServing) not_serving.set_value();
  });
  std::thread operator_thread([&] {
    not_serving.get_future().wait();
    state.Hurry();
  });
  state.RequestDrain();
  EXPECT_EQ(RunDrain(&state, {.delay = absl::Hours(1), .timeout = absl::Hours(1)}),
            (std::vector<ServingPhase>{ServingPhase::kNotServing, ServingPhase::kStopping}));
  operator_thread.join();
  EXPECT_TRUE(state.hurried());
}

TEST(DrainState, ListenersSeeThePresentAndEveryChangeUntilTheyLeave) {
  DrainState state;
  std::vector<size_t> running;
  const DrainState::ListenerId id =
      state.Subscribe([&](const DrainState::Snapshot& snapshot) { running.push_back(snapshot.running); });
  state.RequestDrain();
  {
    const absl::StatusOr<DrainState::Work> work = state.Admit();
  }
  EXPECT_EQ(running, (std::vector<size_t>{0, 1, 0}));
  state.Unsubscribe(id);
  {
    const absl::StatusOr<DrainState::Work> work = state.Admit();
  }
  EXPECT_EQ(running.size(), 3u);
}

TEST(DrainState, PhasesHaveNames) {
  EXPECT_EQ(ServingPhaseName(ServingPhase::kServing), "SERVING");
  EXPECT_EQ(ServingPhaseName(ServingPhase::kNotServing), "NOT_SERVING");
  EXPECT_EQ(ServingPhaseName(ServingPhase::kRefusing), "REFUSING");
  EXPECT_EQ(ServingPhaseName(ServingPhase::kStopping), "STOPPING");
}

}  // namespace
}  // namespace baton
