#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/error_details.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/tiny_cluster.h"

namespace baton {
namespace {

v1::GenerateRequest Greedy(uint32_t salt, uint32_t max_tokens = 30) {
  v1::GenerateRequest request = Request(
      "sampling { temperature: 0 seed: 1 } stopping { ignore_eos: true } response { return_tokens: true "
      "logprobs: 1 }");
  for (uint32_t i = 0; i < 100; ++i) request.mutable_tokens()->add_ids(3 + (i * 7 + salt * 31) % 250);
  request.mutable_stopping()->set_max_tokens(max_tokens);
  return request;
}

// Workers come, go and fail while the router runs.
class WorkersTest : public testing::Test {
 protected:
  // What one prefill and one decode worker answer in peace.
  std::vector<std::string> Expected(const std::vector<v1::GenerateRequest>& requests) {
    ClusterOptions options = model_.options();
    options.prefill.resize(1);
    options.decode.resize(1);
    Cluster cluster(options);
    std::vector<std::string> expected;
    for (const v1::GenerateRequest& request : requests) {
      const Answer answer = Stream(cluster.inference(), request);
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      expected.push_back(Decided(answer.whole));
    }
    return expected;
  }
  std::string Expected(const v1::GenerateRequest& request) { return Expected(std::vector{request})[0]; }
  static void ExpectAnswer(const Answer& answer, const std::string& expected) {
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(Difference(Decided(answer.whole), expected), "");
  }

  // Which of the two has the only request.
  static size_t Assigned(Cluster& cluster, const WorkerNode& first, const WorkerNode& second) {
    cluster.AwaitSeen(
        first, [&](const v1::Worker& seen) { return seen.assigned() + cluster.Seen(second).assigned() > 0; });
    return cluster.Seen(first).assigned() > 0 ? 0 : 1;
  }

  TinyModel model_{2, 2};
};

TEST_F(WorkersTest, ACallWaitsForTheFirstWorkerAndUsesThoseThatComeLater) {
  const std::string expected = Expected(Greedy(1));
  ClusterOptions options = model_.options();
  options.start_workers = false;
  options.router.call.worker_wait = absl::Seconds(20);
  Cluster cluster(options);
  AnswerStream early(cluster.inference(), Greedy(1));
  cluster.decode(0).Start();
  Answer answer = early.Finish();
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().path(), v1::SERVING_PATH_AGGREGATED);
  EXPECT_EQ(answer.whole.timings().path_reason(), "no prefill worker serves");
  EXPECT_FALSE(answer.whole.timings().has_transport());
  cluster.prefill(1).Start();
  cluster.AwaitState(cluster.prefill(1), v1::WORKER_STATE_SERVING);
  answer = Stream(cluster.inference(), Greedy(1));
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().path(), v1::SERVING_PATH_DISAGGREGATED);
}

TEST_F(WorkersTest, WithoutAnyWorkerACallIsRefused) {
  ClusterOptions options = model_.options();
  options.start_workers = false;
  options.router.call.worker_wait = absl::Milliseconds(100);
  Cluster cluster(options);
  const Answer answer = Stream(cluster.inference(), Greedy(1));
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable) << answer.status;
  EXPECT_EQ(ErrorReason(answer.status), "NO_WORKER");
}

TEST_F(WorkersTest, ShortPromptsMayGoToDecodeAlone) {
  const std::string expected = Expected(Greedy(1));
  ClusterOptions options = model_.options();
  options.router.picker.aggregate_below = 101;
  Cluster cluster(options);
  const Answer answer = Stream(cluster.inference(), Greedy(1));
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().path(), v1::SERVING_PATH_AGGREGATED);
  EXPECT_EQ(answer.whole.timings().path_reason(), "short prompt");
}

TEST_F(WorkersTest, AllWorkersAreUsed) {
  Cluster cluster(model_.options());
  std::set<std::string> used;
  for (uint32_t i = 0; i < 4; ++i) {
    const Answer answer = Stream(cluster.inference(), Greedy(i, 3));
    used.insert(answer.whole.timings().prefill_worker());
    used.insert(answer.whole.timings().decode_worker());
  }
  EXPECT_EQ(used.size(), 4);
}

TEST_F(WorkersTest, APrefillWorkerLostBeforeTheFirstTokenIsReplaced) {
  const std::string expected = Expected(Greedy(1));
  Cluster cluster(model_.options());
  for (const auto& engine : model_.prefill) engine->gate().Close();
  AnswerStream stream(cluster.inference(), Greedy(1));
  const size_t lost = Assigned(cluster, cluster.prefill(0), cluster.prefill(1));
  model_.prefill[lost]->gate().AwaitStep();
  model_.prefill[1 - lost]->gate().Open();
  const std::string survivor = cluster.prefill(1 - lost).instance_id();
  std::thread stop([&] { cluster.prefill(lost).Stop(); });  // returns with its step
  const Answer answer = stream.Finish();
  model_.prefill[lost]->gate().Open();
  stop.join();
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().recoveries(), 1);
  EXPECT_GT(answer.whole.timings().lost_attempts_ms(), 0);
  EXPECT_EQ(answer.whole.timings().prefill_worker(), survivor);
}

TEST_F(WorkersTest, ADecodeWorkerLostBeforeTheFirstTokenIsReplaced) {
  const std::string expected = Expected(Greedy(1));
  Cluster cluster(model_.options());
  for (const auto& engine : model_.prefill) engine->gate().Close();
  AnswerStream stream(cluster.inference(), Greedy(1));
  const size_t lost = Assigned(cluster, cluster.decode(0), cluster.decode(1));
  cluster.decode(lost).Stop();
  for (const auto& engine : model_.prefill) engine->gate().Open();
  const Answer answer = stream.Finish();
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().recoveries(), 1);
  EXPECT_EQ(answer.whole.timings().decode_worker(), cluster.decode(1 - lost).instance_id());
}

TEST_F(WorkersTest, ADecodeWorkerLostAmidTheAnswerIsReplaced) {
  const v1::GenerateRequest request = Greedy(1, 600);
  const std::string expected = Expected(request);
  Cluster cluster(model_.options());
  for (const auto& engine : model_.decode) engine->gate().Close();
  AnswerStream stream(cluster.inference(), request);
  const size_t lost = Assigned(cluster, cluster.decode(0), cluster.decode(1));
  for (const auto& engine : model_.decode) engine->gate().Open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream.Next().has_value()) << stream.status();
  cluster.decode(lost).Stop();
  const Answer answer = stream.Finish();
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().recoveries(), 1);
  EXPECT_EQ(answer.whole.usage().completion_tokens(), 600);
}

TEST_F(WorkersTest, AWorkerThatRestartsAtItsAddressIsANewPeer) {
  const std::string expected = Expected(Greedy(1));
  ClusterOptions options = model_.options();
  options.prefill.resize(1);
  options.decode.resize(1);
  Cluster cluster(options);
  for (WorkerNode* node : {&cluster.prefill(), &cluster.decode()}) {
    ExpectAnswer(Stream(cluster.inference(), Greedy(1)), expected);
    const std::string before = node->instance_id();
    node->Stop();
    cluster.AwaitState(*node, v1::WORKER_STATE_SUSPECT);
    node->Start();
    cluster.AwaitState(*node, v1::WORKER_STATE_SERVING);
    EXPECT_NE(node->instance_id(), before);
    const Answer answer = Stream(cluster.inference(), Greedy(1));
    ExpectAnswer(answer, expected);
    EXPECT_EQ(answer.whole.timings().path(), v1::SERVING_PATH_DISAGGREGATED);
  }
}

TEST_F(WorkersTest, WorkersThatDrainUnderLoadLoseNothing) {
  constexpr uint32_t kStreams = 12;
  std::vector<v1::GenerateRequest> requests;
  for (uint32_t i = 0; i < kStreams; ++i) requests.push_back(Greedy(i, 60));
  const std::vector<std::string> expected = Expected(requests);
  Cluster cluster(model_.options());
  std::vector<std::unique_ptr<AnswerStream>> streams;
  for (uint32_t i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<AnswerStream>(cluster.inference(), requests[i]));
    if (i == kStreams / 2) {
      ASSERT_TRUE(streams[0]->Next().has_value()) << streams[0]->status();
      cluster.prefill(0).RequestDrain();
      cluster.decode(1).RequestDrain();
    }
  }
  for (uint32_t i = 0; i < kStreams; ++i) ExpectAnswer(streams[i]->Finish(), expected[i]);
  // What comes after goes elsewhere.
  const Answer after = Stream(cluster.inference(), requests[0]);
  ExpectAnswer(after, expected[0]);
  EXPECT_EQ(after.whole.timings().prefill_worker(), cluster.prefill(1).instance_id());
  EXPECT_EQ(after.whole.timings().decode_worker(), cluster.decode(0).instance_id());
}

TEST_F(WorkersTest, StreamsThatADrainHasNoTimeForGoOnElsewhere) {
  const v1::GenerateRequest request = Greedy(1, 600);
  const std::string expected = Expected(request);
  ClusterOptions options = model_.options();
  options.worker_drain = {.timeout = absl::ZeroDuration(), .hand_back = absl::Seconds(60)};
  Cluster cluster(options);
  for (const auto& engine : model_.decode) engine->gate().Close();
  AnswerStream stream(cluster.inference(), request);
  const size_t drained = Assigned(cluster, cluster.decode(0), cluster.decode(1));
  for (const auto& engine : model_.decode) engine->gate().Open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream.Next().has_value()) << stream.status();
  cluster.decode(drained).RequestDrain();
  const Answer answer = stream.Finish();
  ExpectAnswer(answer, expected);
  EXPECT_EQ(answer.whole.timings().decode_worker(), cluster.decode(1 - drained).instance_id());
  EXPECT_EQ(answer.whole.usage().completion_tokens(), 600);
}

TEST_F(WorkersTest, AFullQueueRefusesEarlyAndSaysWhenToComeAgain) {
  ClusterOptions options = model_.options();
  options.prefill.resize(1);
  options.decode.resize(1);
  options.decode_options.max_running = 1;
  options.router.admission.max_queued = 1;
  Cluster cluster(options);
  model_.decode[0]->gate().Close();
  AnswerStream runs(cluster.inference(), Greedy(1));
  ASSERT_TRUE(runs.Next().has_value()) << runs.status();
  AnswerStream waits(cluster.inference(), Greedy(2));
  cluster.AwaitRequests(2);
  const Answer refused = Stream(cluster.inference(), Greedy(3));
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kResourceExhausted) << refused.status;
  EXPECT_TRUE(GetRetryDelay(refused.status).has_value());
  EXPECT_NE(refused.status.message().find("queue"), std::string::npos) << refused.status;
  model_.decode[0]->gate().Open();
  EXPECT_TRUE(runs.Finish().status.ok());
  const Answer answer = waits.Finish();
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_GT(answer.whole.timings().router_queue_ms(), 0);
}

}  // namespace
}  // namespace baton
