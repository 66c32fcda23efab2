#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "common/error_details.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/tiny_cluster.h"

namespace baton {
namespace {

enum class Means { kClient, kDeadline, kOperator };
enum class Point { kComputingThePrompt, kAfterToken0, kBetweenTokens };

// Calls that end early, beside one that must not notice.
class CancelCallTest : public testing::Test {
 protected:
  CancelCallTest() {
    undisturbed_ = Stream(cluster_->inference(), Bystander());
    EXPECT_TRUE(undisturbed_.status.ok()) << undisturbed_.status;
    bystander_ = std::make_unique<AnswerStream>(cluster_->inference(), Bystander());
    EXPECT_TRUE(bystander_->Next().has_value()) << bystander_->status();
  }
  void TearDown() override {
    model_.OpenGates();
    const Answer answer = bystander_->Finish();
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(Difference(Decided(answer.whole), Decided(undisturbed_.whole)), "");
  }

  static v1::GenerateRequest Bystander() {
    return Request(
        "prompt: 'hello world' sampling { temperature: 0 seed: 1 } "
        "stopping { max_tokens: 900 ignore_eos: true } response { return_tokens: true logprobs: 1 }");
  }
  // Several chunks of prompt, and more tokens than any test waits for.
  static v1::GenerateRequest Victim() {
    v1::GenerateRequest request = Request(
        "request_id: 'victim' sampling { temperature: 0 } stopping { max_tokens: 700 ignore_eos: true }");
    for (uint32_t i = 0; i < 200; ++i) request.mutable_tokens()->add_ids(3 + i % 250);
    return request;
  }
  void Abort() {
    grpc::ClientContext context;
    v1::AbortRequest request;
    request.set_request_id("victim");
    v1::AbortResponse response;
    EXPECT_TRUE(cluster_->control().Abort(&context, request, &response).ok());
    EXPECT_TRUE(response.found());
  }
  // Within a second the victim holds nothing on either side, and only the bystander runs, if it still does.
  void ExpectVictimIsGone() {
    const absl::Time end = absl::Now() + absl::Seconds(1);
    v1::GetLoadResponse load;
    bool gone = false;
    do {
      load = cluster_->decode().client().Load();
      gone = load.requests_running() + load.requests_waiting() <= 1 && cluster_->Requests() <= 1 &&
             cluster_->prefill().CheckIdle().ok();
    } while (!gone && absl::Now() < end);
    EXPECT_TRUE(gone) << load.ShortDebugString() << cluster_->prefill().CheckIdle();
  }

  TinyModel model_{1, 1};
  std::unique_ptr<Cluster> cluster_ = std::make_unique<Cluster>(model_.options());
  Answer undisturbed_;
  std::unique_ptr<AnswerStream> bystander_;
};

class CancelPointTest : public CancelCallTest,
                        public testing::WithParamInterface<std::tuple<Means, Point>> {};

TEST_P(CancelPointTest, FreesBothSidesAndDisturbsNobody) {
  const auto& [means, point] = GetParam();
  GatedEngine& prefill = model_.prefill[0]->gate();
  GatedEngine& decode = model_.decode[0]->gate();
  if (point == Point::kComputingThePrompt) prefill.Close();
  const auto deadline =
      means == Means::kDeadline ? std::chrono::milliseconds(500) : std::chrono::milliseconds(30000);
  AnswerStream victim(cluster_->inference(), Victim(), deadline);
  switch (point) {
    case Point::kComputingThePrompt:
      prefill.AwaitStep();
      break;
    case Point::kAfterToken0:
    case Point::kBetweenTokens:
      for (int i = 0; i < (point == Point::kAfterToken0 ? 1 : 5); ++i)
        ASSERT_TRUE(victim.Next().has_value()) << victim.status();
      decode.Close();
      decode.AwaitStep();
      break;
  }
  if (means == Means::kClient) victim.Cancel();
  if (means == Means::kOperator) Abort();
  const absl::StatusCode codes[] = {absl::StatusCode::kCancelled, absl::StatusCode::kDeadlineExceeded,
                                    absl::StatusCode::kAborted};
  const Answer answer = victim.Finish();
  EXPECT_EQ(answer.status.code(), codes[static_cast<int>(means)]) << answer.status;
  prefill.Open();
  decode.Open();
  ExpectVictimIsGone();
}

std::string NameOf(const testing::TestParamInfo<CancelPointTest::ParamType>& info) {
  constexpr const char* kMeans[] = {"Client", "Deadline", "Operator"};
  constexpr const char* kPoints[] = {"ComputingThePrompt", "AfterToken0", "BetweenTokens"};
  const auto& [means, point] = info.param;
  return std::string(kMeans[static_cast<int>(means)]) + kPoints[static_cast<int>(point)];
}

INSTANTIATE_TEST_SUITE_P(Everywhere, CancelPointTest,
                         testing::Combine(testing::Values(Means::kClient, Means::kDeadline, Means::kOperator),
                                          testing::Values(Point::kComputingThePrompt, Point::kAfterToken0,
                                                          Point::kBetweenTokens)),
                         NameOf);

// Without gates: wherever the cancel happens to fall.
TEST_F(CancelCallTest, AtManyPoints) {
  for (int messages = 0; messages < 24; ++messages) {
    v1::GenerateRequest request = Victim();
    request.clear_request_id();
    AnswerStream victim(cluster_->inference(), request);
    for (int i = 0; i < messages / 2; ++i) ASSERT_TRUE(victim.Next().has_value()) << victim.status();
    victim.Cancel();
    EXPECT_EQ(victim.Finish().status.code(), absl::StatusCode::kCancelled);
  }
  ExpectVictimIsGone();
}

TEST_F(CancelCallTest, AUnaryCallEndsAtItsDeadline) {
  model_.prefill[0]->gate().Close();
  grpc::ClientContext context;
  context.set_deadline(After(std::chrono::milliseconds(300)));
  v1::GenerateResponse response;
  EXPECT_EQ(cluster_->inference().Generate(&context, Victim(), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  model_.prefill[0]->gate().Open();
  ExpectVictimIsGone();
}

// The client is there, and does not read what it is sent.
TEST(SlowReaderTest, IsCutOffAndDisturbsNobody) {
  TinyModel model(1, 1);
  ClusterOptions options = model.options();
  options.inference.max_unread_messages = 1;
  Cluster cluster(options);
  v1::GenerateRequest request = Request(
      "prompt: 'hello' sampling { temperature: 0 seed: 1 } stopping { max_tokens: 900 ignore_eos: true } "
      "response { logprobs: 20 }");
  const Answer undisturbed = Generate(cluster.inference(), request);
  ASSERT_TRUE(undisturbed.status.ok()) << undisturbed.status;
  ASSERT_EQ(undisturbed.whole.logprobs_size(), 900);
  ASSERT_GT(undisturbed.whole.ByteSizeLong(), 200 << 10);
  // A connection that takes 64 KiB unread, whatever the machine.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::Inference::NewStub(
      grpc::CreateCustomChannel(cluster.address(), grpc::InsecureChannelCredentials(), arguments));
  AnswerStream slow(*stub, request);
  const Answer beside = Generate(cluster.inference(), request);
  EXPECT_TRUE(beside.status.ok()) << beside.status;
  EXPECT_EQ(Difference(Decided(beside.whole), Decided(undisturbed.whole)), "");
  cluster.AwaitRequests(0);
  cluster.ExpectIdle();
  const Answer cut = slow.Finish();
  EXPECT_EQ(cut.status.code(), absl::StatusCode::kResourceExhausted) << cut.status;
  EXPECT_EQ(ErrorReason(cut.status), "SLOW_READER");
  EXPECT_LT(cut.whole.logprobs_size(), 900);
}

}  // namespace
}  // namespace baton
