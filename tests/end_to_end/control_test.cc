#include <memory>
#include <string>

#include "common/error_details.h"
#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "common/raw_service.h"
#include "common/version.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/tiny_cluster.h"

namespace baton {
namespace {

using grpc::health::v1::HealthCheckResponse;

// What operators and tools ask: Control, Health and reflection of a router.
class ControlTest : public testing::Test {
 protected:
  // Whether `service` of the server at `address` takes work.
  static HealthCheckResponse::ServingStatus Health(const std::string& address, const std::string& service) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const auto stub = grpc::health::v1::Health::NewStub(CreateChannel(address));
    const grpc::Status status = stub->Check(&context, request, &response);
    return status.ok() ? response.status() : HealthCheckResponse::SERVICE_UNKNOWN;
  }
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> WatchInference(grpc::ClientContext* context) {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service("baton.v1.Inference");
    return grpc::health::v1::Health::NewStub(CreateChannel(cluster_.address()))->Watch(context, request);
  }
  bool Abort(const std::string& request_id) {
    grpc::ClientContext context;
    v1::AbortRequest request;
    request.set_request_id(request_id);
    v1::AbortResponse response;
    const grpc::Status status = cluster_.control().Abort(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.found();
  }

  TinyModel model_{1, 1};
  Cluster cluster_{model_.options()};
};

TEST_F(ControlTest, ARouterTellsWhatItIsAndWhatItServes) {
  grpc::ClientContext info_context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(cluster_.control().GetServerInfo(&info_context, {}, &info).ok());
  EXPECT_EQ(info.role(), v1::ROLE_ROUTER);
  EXPECT_EQ(info.version(), kVersion);
  EXPECT_EQ(info.instance_id().size(), 36);
  EXPECT_EQ(info.state(), v1::SERVER_STATE_SERVING);
  EXPECT_GE(info.protocol_max(), info.protocol_min());

  grpc::ClientContext list_context;
  v1::ListModelsResponse models;
  ASSERT_TRUE(cluster_.control().ListModels(&list_context, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  const v1::ModelInfo& model = models.models(0);
  EXPECT_EQ(model.name(), "tiny-llama");
  EXPECT_EQ(model.context_tokens(), 1024);  // of the workers, less than the file's
  EXPECT_EQ(model.vocab_size(), model_.served->tokenizer().vocab_size());
  EXPECT_TRUE(model.has_chat_template());
  EXPECT_EQ(model.fingerprint(), model_.decode[0]->gate().info().fingerprint);

  grpc::ClientContext model_context;
  v1::GetModelInfoRequest request;
  request.set_model("tiny-llama");
  v1::GetModelInfoResponse named;
  ASSERT_TRUE(cluster_.control().GetModelInfo(&model_context, request, &named).ok());
  EXPECT_EQ(named.model().DebugString(), model.DebugString());
  grpc::ClientContext unknown_context;
  request.set_model("no-such");
  EXPECT_EQ(cluster_.control().GetModelInfo(&unknown_context, request, &named).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControlTest, ListWorkersShowsWhatTheRouterKnows) {
  const v1::Worker prefill = cluster_.Seen(cluster_.prefill());
  EXPECT_EQ(prefill.role(), v1::ROLE_PREFILL);
  EXPECT_EQ(prefill.state(), v1::WORKER_STATE_SERVING);
  EXPECT_EQ(prefill.instance_id(), cluster_.prefill().instance_id());
  EXPECT_EQ(prefill.model().name(), "tiny-llama");
  EXPECT_TRUE(prefill.model().has_chat_template());
  EXPECT_EQ(prefill.assigned(), 0);
  const v1::Worker decode = cluster_.Seen(cluster_.decode());
  EXPECT_EQ(decode.role(), v1::ROLE_DECODE);
  EXPECT_EQ(decode.instance_id(), cluster_.decode().instance_id());
}

TEST_F(ControlTest, LoadFollowsTheRequests) {
  EXPECT_EQ(cluster_.Requests(), 0);
  model_.decode[0]->gate().Close();
  AnswerStream stream(cluster_.inference(),
                      Request("prompt: 'x' stopping { max_tokens: 9 ignore_eos: true }"));
  ASSERT_TRUE(stream.Next().has_value()) << stream.status();
  EXPECT_EQ(cluster_.Requests(), 1);
  cluster_.AwaitSeen(cluster_.decode(), [](const v1::Worker& seen) { return seen.assigned() == 1; });
  model_.decode[0]->gate().Open();
  EXPECT_TRUE(stream.Finish().status.ok());
  EXPECT_EQ(cluster_.Requests(), 0);
  cluster_.AwaitSeen(cluster_.decode(), [](const v1::Worker& seen) { return seen.assigned() == 0; });
}

TEST_F(ControlTest, AbortEndsTheRequestOfThatIdAlone) {
  EXPECT_FALSE(Abort("victim"));
  AnswerStream victim(
      cluster_.inference(),
      Request("prompt: 'x' request_id: 'victim' stopping { max_tokens: 900 ignore_eos: true }"));
  AnswerStream other(
      cluster_.inference(),
      Request("prompt: 'x' request_id: 'victim2' stopping { max_tokens: 900 ignore_eos: true }"));
  ASSERT_TRUE(victim.Next().has_value()) << victim.status();
  ASSERT_TRUE(other.Next().has_value()) << other.status();
  model_.decode[0]->gate().Close();
  model_.decode[0]->gate().AwaitStep();
  EXPECT_FALSE(Abort("victi"));
  EXPECT_TRUE(Abort("victim"));
  EXPECT_EQ(victim.Finish().status.code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(Abort("victim"));
  model_.decode[0]->gate().Open();
  const Answer answer = other.Finish();
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.whole.usage().completion_tokens(), 900);
}

TEST_F(ControlTest, HealthFollowsTheDecodeWorkers) {
  for (const char* service : {"", "baton.v1.Inference", "baton.v1.Control"}) {
    EXPECT_EQ(Health(cluster_.address(), service), HealthCheckResponse::SERVING) << service;
  }
  EXPECT_EQ(Health(cluster_.address(), "baton.v1.NoSuch"), HealthCheckResponse::SERVICE_UNKNOWN);
  grpc::ClientContext context;
  const auto watch = WatchInference(&context);
  HealthCheckResponse health;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), HealthCheckResponse::SERVING);
  cluster_.decode().Stop();
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health(cluster_.address(), ""), HealthCheckResponse::SERVING);  // alive, whatever its peers are
  cluster_.decode().Start();
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), HealthCheckResponse::SERVING);
  context.TryCancel();
}

TEST_F(ControlTest, ReflectionListsTheServices) {
  constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  constexpr char kListServices[] = "\x3a\x01*";  // ServerReflectionRequest{list_services: "*"}
  const auto services = [&](const std::string& address) {
    grpc::ClientContext context;
    std::string response;
    EXPECT_TRUE(CallRaw(CreateChannel(address), kReflection, &context, kListServices, &response).ok());
    return response;
  };
  const std::string router = services(cluster_.address());
  for (const char* name : {"baton.v1.Inference", "baton.v1.Control", "grpc.health.v1.Health"}) {
    EXPECT_NE(router.find(name), std::string::npos) << name;
  }
  EXPECT_NE(services(cluster_.prefill().address()).find("baton.v1.PrefillWorker"), std::string::npos);
  EXPECT_NE(services(cluster_.decode().address()).find("baton.v1.KvTransfer"), std::string::npos);
}

TEST_F(ControlTest, DrainRefusesNewCallsAndLetsRunningOnesFinish) {
  grpc::ClientContext watch_context;
  const auto watch = WatchInference(&watch_context);
  model_.decode[0]->gate().Close();
  AnswerStream running(cluster_.inference(),
                       Request("prompt: 'x' stopping { max_tokens: 20 ignore_eos: true }"));
  ASSERT_TRUE(running.Next().has_value()) << running.status();
  grpc::ClientContext context;
  const auto drain = cluster_.control().Drain(&context, {});
  v1::DrainResponse state;
  ASSERT_TRUE(drain->Read(&state));
  EXPECT_EQ(state.requests_left(), 1);
  EXPECT_FALSE(state.drained());
  HealthCheckResponse health;
  while (health.status() != HealthCheckResponse::NOT_SERVING) ASSERT_TRUE(watch->Read(&health));
  // Refused from now on, with a reason that clients can act on.
  const Answer refused = Stream(cluster_.inference(), Request("prompt: 'x' stopping { max_tokens: 1 }"));
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused.status), "DRAINING");
  model_.decode[0]->gate().Open();
  const Answer answer = running.Finish();
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.whole.usage().completion_tokens(), 20);
  while (drain->Read(&state)) {
  }
  EXPECT_TRUE(state.drained());
  EXPECT_EQ(state.requests_left(), 0);
  cluster_.AwaitRouterEnd();
}

TEST_F(ControlTest, TheRoutersMetricsMove) {
  // The first step of decode waits until prefill has said how long the handoff took.
  model_.decode[0]->gate().Close();
  AnswerStream stream(cluster_.inference(),
                      Request("prompt: 'hello' stopping { max_tokens: 5 ignore_eos: true }"));
  ASSERT_TRUE(stream.Next().has_value()) << stream.status();
  ASSERT_TRUE(cluster_.prefill().client().AwaitIdle());
  model_.decode[0]->gate().Open();
  ASSERT_TRUE(stream.Finish().status.ok()) << stream.status();
  EXPECT_FALSE(Stream(cluster_.inference(), Request("prompt: 'hello' request_id: 'a b'")).status.ok());
  Metrics& metrics = cluster_.metrics();
  EXPECT_EQ(metrics.Get<Metric::kRequests>("OK", "length").Value(), 1);
  EXPECT_EQ(metrics.Get<Metric::kGenerationTokens>().Value(), 5);
  EXPECT_GT(metrics.Get<Metric::kPromptTokens>().Value(), 0);
  EXPECT_EQ(metrics.Get<Metric::kRequestsRunning>().Value(), 0);
  EXPECT_EQ(metrics.Get<Metric::kWorkers>("prefill", "serving").Value(), 1);
  EXPECT_EQ(metrics.Get<Metric::kWorkers>("decode", "serving").Value(), 1);
  const std::string text = metrics.Text();
  for (const char* name :
       {"baton_time_to_first_token_seconds_count", "baton_time_per_output_token_seconds_count",
        "baton_request_duration_seconds_count", "baton_handoff_seconds_count"}) {
    EXPECT_NE(text.find(std::string(name) + "{model=\"model\",role=\"router\"} 1"), std::string::npos)
        << name << text;
  }
  EXPECT_NE(text.find("baton_inter_token_latency_seconds_count{model=\"model\",role=\"router\"} 4"),
            std::string::npos);
}

}  // namespace
}  // namespace baton
