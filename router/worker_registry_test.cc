#include "router/worker_registry.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol_version.h"
#include "gtest/gtest.h"
#include "router/probe_schedule.h"
#include "tests/support/worker_info.h"

namespace baton {
namespace {

v1::GetServerInfoResponse Info(v1::Role role, std::string instance, std::string fingerprint = "hash/f16") {
  v1::GetServerInfoResponse info = WorkerInfo(role, std::move(instance), std::move(fingerprint));
  info.mutable_model()->set_context_tokens(512);
  return info;
}

class WorkerRegistryTest : public ::testing::Test {
 protected:
  WorkerRegistryTest() { registry.Add("d0", v1::ROLE_DECODE); }
  v1::Worker Only() const { return registry.List().workers(0); }
  void Lose() { registry.OnLost("d0", "one", "reset", now); }
  void Answer() { registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"), now); }
  absl::Time now = absl::FromUnixSeconds(1000);
  WorkerRegistry registry{"hash"};
};

TEST_F(WorkerRegistryTest, AWorkerServesOnceItHasSaidWhatItIs) {
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_CONNECTING);
  EXPECT_FALSE(registry.CanServe());
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"), now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  EXPECT_TRUE(registry.CanServe());
  EXPECT_EQ(registry.InstanceOf("d0"), "one");
}

TEST_F(WorkerRegistryTest, IncompatibleWorkersSayWhy) {
  registry.OnInfo("d0", Info(v1::ROLE_PREFILL, "one"), now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_INCOMPATIBLE);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one", "different/f16"), now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_INCOMPATIBLE);
  EXPECT_NE(Only().state_reason().find("different/f16"), std::string::npos);
  v1::GetServerInfoResponse newer = Info(v1::ROLE_DECODE, "one");
  newer.set_protocol_min(kProtocolVersion + 1);
  newer.set_protocol_max(kProtocolVersion + 1);
  registry.OnInfo("d0", newer, now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_INCOMPATIBLE);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"), now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
}

TEST_F(WorkerRegistryTest, ALostWorkerIsSuspectUntilItAnswers) {
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"), now);
  registry.OnLost("d0", "an earlier instance", "reset", now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  registry.OnLost("d0", "one", "reset", now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SUSPECT);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "two"), now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  EXPECT_EQ(registry.InstanceOf("d0"), "two");
}

TEST_F(WorkerRegistryTest, AnAnswerToAnEarlierQuestionDoesNotClearALostWorker) {
  Answer();
  const absl::Time asked = now;
  now += absl::Milliseconds(10);
  Lose();
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"), asked);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SUSPECT);
  Answer();
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
}

TEST_F(WorkerRegistryTest, WhatIsLostAgainAndAgainIsLeftAloneForLongerAndNeverForEver) {
  Answer();
  std::vector<double> waits;
  for (int loss = 0; loss < 9; ++loss) {
    Lose();
    Lose();  // its other legs
    double wait = 0;
    for (Answer(); Only().state() == v1::WORKER_STATE_SUSPECT; Answer()) {
      now += absl::Milliseconds(500);
      wait += 0.5;
    }
    waits.push_back(wait);
  }
  EXPECT_EQ(waits, (std::vector<double>{0, 1, 2, 4, 8, 16, 30, 30, 30}));
  registry.OnProven("d0", "one");
  Lose();
  Answer();
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
}

TEST_F(WorkerRegistryTest, ANewInstanceStartsWithoutItsPredecessorsPast) {
  Answer();
  for (int loss = 0; loss < 3; ++loss) {
    Lose();
    now += absl::Minutes(1);
    Answer();
  }
  Lose();
  EXPECT_EQ(registry.replacements(), 0);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "two"), now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  EXPECT_EQ(registry.replacements(), 1);
  EXPECT_TRUE(registry.Replaced("d0", "one"));
  EXPECT_FALSE(registry.Replaced("d0", "two"));
}

TEST_F(WorkerRegistryTest, WhatItsHealthSaysCountsAtOnceAndOutlivesAProbe) {
  Answer();
  registry.OnHealth("d0", false);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_NOT_SERVING);
  EXPECT_FALSE(registry.CanServe());
  Answer();
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_NOT_SERVING);
  registry.OnHealth("d0", true);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
}

TEST_F(WorkerRegistryTest, AWorkerThatRunsRequestsAndTakesNoStepsIsAvoided) {
  Answer();
  v1::GetLoadResponse load;
  load.set_requests_running(0);
  load.set_steps(7);
  registry.OnLoad("d0", load, now);
  now += absl::Minutes(1);
  registry.OnLoad("d0", load, now);  // idle
  load.set_requests_running(1);
  registry.OnLoad("d0", load, now);
  now += WorkerRegistry::kStandstill;
  registry.OnLoad("d0", load, now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_NOT_SERVING);
  EXPECT_EQ(Only().state_reason(), "takes no steps");
  load.set_steps(8);
  registry.OnLoad("d0", load, now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
}

TEST_F(WorkerRegistryTest, AWorkerThatRefusesForItsDrainIsDraining) {
  Answer();
  registry.OnDraining("d0", "an earlier instance");
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  registry.OnDraining("d0", "one");
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_DRAINING);
}

TEST_F(WorkerRegistryTest, AWayBetweenTwoWorkersThatFailedIsTriedAgainByOneRequestAtATime) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const Pairs pair = {{"p0", "d0"}};
  registry.Add("p0", v1::ROLE_PREFILL);
  registry.OnHandoffFailed("p0", "d0", now);
  EXPECT_EQ(registry.SuspectPairs(now), pair);
  now += Suspicion::kFirst;
  EXPECT_EQ(registry.SuspectPairs(now), Pairs());
  registry.OnHandoffTried("p0", "d0", now);
  EXPECT_EQ(registry.SuspectPairs(now), pair);
  registry.OnHandoffLanded("p0", "d0");
  EXPECT_EQ(registry.SuspectPairs(now), Pairs());
  registry.OnHandoffFailed("p0", "d0", now);
  registry.Remove("p0");
  EXPECT_EQ(registry.SuspectPairs(now), Pairs());
}

TEST_F(WorkerRegistryTest, AnAssignmentGivesBackExactlyOnce) {
  std::optional<Assignment> first = registry.Assign("d0", 100, 60);
  Assignment second = registry.Assign("d0", 10, 6);
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 110);
  EXPECT_EQ(registry.Snapshot()[0].depth_tokens, 66);
  EXPECT_EQ(registry.Snapshot()[0].assigned_requests, 2);
  first->ReleaseTokens();
  first->ReleaseTokens();
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 10);
  EXPECT_EQ(registry.Snapshot()[0].depth_tokens, 6);
  EXPECT_EQ(registry.Snapshot()[0].assigned_requests, 2);
  Assignment moved = std::move(second);
  second.Reset();
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 10);
  first.reset();
  moved = Assignment();
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 0);
  EXPECT_EQ(registry.Snapshot()[0].assigned_requests, 0);
}

TEST_F(WorkerRegistryTest, ARemovedWorkerIsForgottenWithItsLastRequest) {
  Assignment assignment = registry.Assign("d0", 1, 1);
  registry.Remove("d0");
  EXPECT_TRUE(registry.Snapshot().empty());
  EXPECT_EQ(registry.List().workers_size(), 1);
  assignment.Reset();
  EXPECT_EQ(registry.List().workers_size(), 0);
}

TEST_F(WorkerRegistryTest, DrainingWorkersTakeNothingNew) {
  v1::GetServerInfoResponse info = Info(v1::ROLE_DECODE, "one");
  info.set_state(v1::SERVER_STATE_DRAINING);
  registry.OnInfo("d0", info, now);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_DRAINING);
  EXPECT_FALSE(registry.Snapshot()[0].serving);
}

TEST(ProbeSchedule, AsksOftenWhoAnswersAndLessOftenWhoDoesNotAndNobodyTwiceAtOnce) {
  using Names = std::vector<std::string>;
  ProbeSchedule schedule(absl::Milliseconds(500), absl::Seconds(2));
  absl::Time now = absl::FromUnixSeconds(1000);
  schedule.Add("a", now);
  EXPECT_EQ(schedule.TakeDue(now), Names{"a"});
  schedule.Hurry("a", now);
  EXPECT_EQ(schedule.TakeDue(now), Names());
  schedule.OnAnswer("a", true, now);
  EXPECT_EQ(schedule.TakeDue(now), Names{"a"});  // there was news of it
  schedule.OnAnswer("a", true, now);
  std::vector<double> pauses;
  for (int i = 0; i < 6; ++i) {
    pauses.push_back(absl::ToDoubleSeconds(schedule.next_timer() - now));
    now = schedule.next_timer();
    EXPECT_EQ(schedule.TakeDue(now), Names{"a"});
    schedule.OnAnswer("a", i == 4, now);
  }
  EXPECT_EQ(pauses, (std::vector<double>{0.5, 0.5, 1, 2, 2, 0.5}));
  schedule.Remove("a");
  EXPECT_EQ(schedule.next_timer(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace baton
