#include "router/pair_picker.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

WorkerSnapshot Worker(std::string name, v1::Role role) {
  WorkerSnapshot worker;
  worker.name = std::move(name);
  worker.role = role;
  worker.serving = true;
  worker.fingerprint = "f";
  worker.block_tokens = 16;
  worker.kv_capacity_tokens = 1024;
  worker.max_running = 4;
  return worker;
}

class PickPairTest : public ::testing::Test {
 protected:
  PickPairTest()
      : workers{Worker("p0", v1::ROLE_PREFILL), Worker("p1", v1::ROLE_PREFILL), Worker("d0", v1::ROLE_DECODE),
                Worker("d1", v1::ROLE_DECODE)} {}

  PickResult Pick() const { return PickPair(workers, request, options); }
  std::string Names() const {
    const PickResult result = Pick();
    return result.outcome == PickResult::kPicked ? result.pair.prefill + "+" + result.pair.decode : "";
  }

  std::vector<WorkerSnapshot> workers;
  PairRequest request{.prompt_tokens = 100, .total_tokens = 200};
  PickerOptions options{.prefill_depth_tokens = 256};
};

TEST_F(PickPairTest, TakesTheLeastLoadedOfEachRole) {
  workers[0].assigned_tokens = 50;
  workers[2].assigned_requests = 1;
  EXPECT_EQ(Names(), "p1+d1");
}

TEST_F(PickPairTest, EqualsTakeTurns) {
  workers[0].last_assigned = 5;
  workers[1].last_assigned = 4;
  workers[2].last_assigned = 1;
  workers[3].last_assigned = 2;
  EXPECT_EQ(Names(), "p1+d0");
}

TEST_F(PickPairTest, WaitsForPrefillThatHasEnoughToDo) {
  for (size_t i : {0, 1}) workers[i].assigned_tokens = workers[i].depth_tokens = 200;
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
  EXPECT_EQ(Pick().awaited, "p0");
  workers[1].assigned_tokens = workers[1].depth_tokens = 156;
  EXPECT_EQ(Names(), "p1+d0");
}

TEST_F(PickPairTest, CountsWhatADecodeWorkerReservesAtFirst) {
  for (size_t i : {2, 3}) workers[i].assigned_tokens = 1024 - 128;
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
  workers[3].reserve_tokens = 16;
  EXPECT_EQ(Names(), "p0+d1");
  EXPECT_EQ(Pick().pair.reserved_tokens, 116);
  request.output_tokens = 20;  // they are computed again
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
}

TEST_F(PickPairTest, AnIdlePrefillWorkerTakesAPromptOfAnyLength) {
  request.prompt_tokens = 900;
  request.total_tokens = 901;
  EXPECT_EQ(Names(), "p0+d0");
}

TEST_F(PickPairTest, WaitsForDecodeWithoutRoom) {
  for (WorkerSnapshot& worker : workers) worker.assigned_tokens = worker.role == v1::ROLE_DECODE ? 900 : 0;
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
  workers[3].assigned_tokens = 1024 - 208;  // 200 tokens take 13 blocks
  EXPECT_EQ(Names(), "p0+d1");
  workers[3].assigned_tokens += 1;
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
}

TEST_F(PickPairTest, TellsBusyFromAbsentFromTooSmall) {
  request.total_tokens = 1025;
  EXPECT_EQ(Pick().outcome, PickResult::kTooLarge);
  EXPECT_EQ(Pick().largest_tokens, 1024);
  workers[2].serving = workers[3].serving = false;
  EXPECT_EQ(Pick().outcome, PickResult::kNoWorker);
}

TEST_F(PickPairTest, PairsOnlyEqualFingerprints) {
  workers[0].fingerprint = "other";
  workers[1].assigned_tokens = 50;
  EXPECT_EQ(Names(), "p1+d0");
  workers[1].serving = false;
  EXPECT_EQ(Names(), "+d0");
  EXPECT_EQ(Pick().pair.path_reason, "no prefill worker serves");
}

TEST_F(PickPairTest, ShortPromptsAreAggregatedBelowTheThreshold) {
  options.aggregate_below = 101;
  EXPECT_EQ(Names(), "+d0");
  EXPECT_EQ(Pick().pair.path, v1::SERVING_PATH_AGGREGATED);
  options.aggregate_below = 100;
  EXPECT_EQ(Names(), "p0+d0");
}

TEST_F(PickPairTest, ShortPromptsNeedNotWaitForAHugeOne) {
  request.prompt_tokens = 900;
  request.total_tokens = 901;
  EXPECT_EQ(Pick().pair.depth_tokens, 192);
  for (size_t i : {0, 1}) {
    workers[i].assigned_tokens = 900;
    workers[i].depth_tokens = 192;
  }
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
  request = {.prompt_tokens = 64, .total_tokens = 100};
  EXPECT_EQ(Names(), "p0+d0");
}

TEST_F(PickPairTest, NobodyElseTakesTheRoomOfAFencedWorker) {
  workers[2].fenced = true;
  EXPECT_EQ(Names(), "p0+d1");
  workers[3].fenced = true;
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
  workers[2].fenced = workers[3].fenced = false;
  workers[0].fenced = true;
  EXPECT_EQ(Names(), "p1+d0");
  workers[1].fenced = true;
  EXPECT_EQ(Pick().outcome, PickResult::kWait);
}

TEST_F(PickPairTest, AnAnswerGoesOnWithinItsFingerprintAndIfItCanAtItsRecipes) {
  request.fingerprint = "f";
  request.prefill_recipe = request.decode_recipe = "r1";
  for (size_t i : {1, 3}) workers[i].prefill_recipe = workers[i].decode_recipe = "r1";
  workers[3].assigned_requests = 3;
  EXPECT_EQ(Names(), "p1+d1");
  workers[3].fingerprint = "other";
  EXPECT_EQ(Names(), "p1+d0");
  workers[2].serving = false;
  EXPECT_EQ(Pick().outcome, PickResult::kNoWorker);
}

TEST_F(PickPairTest, ADecodeWorkerThatPrefillReachesComesBeforeOneThatMustPrefillItself) {
  request.suspect_pairs = {{"p0", "d0"}, {"p1", "d0"}};
  EXPECT_EQ(Names(), "p0+d1");
  request.suspects = {"d1"};
  EXPECT_EQ(Names(), "+d0");
}

TEST_F(PickPairTest, SuspectsAreTakenLast) {
  request.suspects = {"p0", "d0"};
  EXPECT_EQ(Names(), "p1+d1");
  workers[3].serving = false;
  EXPECT_EQ(Names(), "p1+d0");
  request.suspect_pairs = {{"p1", "d0"}};
  EXPECT_EQ(Names(), "+d0");
  EXPECT_EQ(Pick().pair.path_reason, "no prefill worker can be relied on");
}

}  // namespace
}  // namespace baton
