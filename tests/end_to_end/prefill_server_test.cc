#include "prefill_service/prefill_server.h"

#include <memory>
#include <string>
#include <thread>

#include "common/error_details.h"
#include "common/metrics.h"
#include "common/raw_socket.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/landing.h"
#include "tests/support/gated_engine.h"
#include "tests/support/leg_client.h"
#include "tests/support/leg_requests.h"
#include "tests/support/scripted_engine.h"

namespace baton {
namespace {

// A prefill service over a scripted engine, on a port of its own. No decode service is there: landings lead
// to a peer that accepts connections and says nothing, so that a handoff waits until something else ends it.
class PrefillServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = PrefillServer::Start({}, {.max_running = 2, .max_waiting = 1}, {GrpcBackend()},
                                        {.engine = &gate_,
                                         .device = device_.get(),
                                         .clock = &clock_,
                                         .random = &random_,
                                         .metrics = &metrics_,
                                         .drain = &drain_});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    worker_ = std::make_unique<WorkerClient>(server_->address().ToString());
    ASSERT_FALSE(worker_->Abort("nobody"));  // answered by the loop, after its warm-up
  }
  void TearDown() override {
    gate_.Open();
    server_.reset();
    EXPECT_TRUE(engine_.kv().CheckAllFree().ok()) << engine_.kv().CheckAllFree();
  }

  v1::PrefillRequest Request(uint8_t number, uint32_t tokens) {
    return RequestTo(number, tokens, "127.0.0.1:" + std::to_string(silent_.port()));
  }
  v1::PrefillRequest RequestTo(uint8_t number, uint32_t tokens, const std::string& address) {
    v1::PrefillRequest request = MakePrefillRequest(number, LetterPrompt(tokens));
    std::vector<TokenRange> wanted;
    const KvGeometry& geometry = engine_.kv().geometry();
    for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
      wanted.push_back(geometry.NeededAfter(group, tokens));
    }
    *request.mutable_landing() =
        MakeLanding(MintTicket(random_), "decode-1", address, {"grpc"}, geometry, wanted);
    return request;
  }
  absl::StatusCode CodeOf(const v1::PrefillRequest& request) {
    return worker_->Prefill(request)->Finish().code();
  }

  RawSocket silent_ = RawSocket::Listen();
  SteadyClock clock_;
  SystemRandomSource random_;
  DrainState drain_;
  ScriptedEngine engine_{{.context_tokens = 512}};
  GatedEngine gate_{&engine_};
  std::unique_ptr<Device> device_ = CreateCpuDevice();
  Metrics metrics_{"prefill", "scripted"};
  std::unique_ptr<PrefillServer> server_;
  std::unique_ptr<WorkerClient> worker_;
};

TEST_F(PrefillServerTest, Token0DoesNotWaitForTheTransfer) {
  const auto leg = worker_->Prefill(Request(1, 100));
  const std::optional<v1::PrefillEvent> event = leg->Next();
  ASSERT_TRUE(event.has_value()) << leg->Finish();
  EXPECT_EQ(event->first_token().token().id(),
            ScriptedEngine::ExpectedAnswer({.context_tokens = 512}, LetterPrompt(100), 1).front());
  // Waiting is not silence.
  EXPECT_TRUE(leg->NextProgress().has_value());
  leg->Cancel();
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(worker_->AwaitIdle());
  EXPECT_EQ(metrics_.Get<Metric::kCancels>("pushing").Value(), 1);
}

TEST_F(PrefillServerTest, ALostPeerIsNamedForTheRouterToSuspect) {
  const absl::Status status = worker_->Prefill(RequestTo(1, 100, "127.0.0.1:1"))->Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(ErrorReason(status), "HANDOFF_FAILED");
  EXPECT_EQ(GetErrorInfo(status)->metadata.at("peer"), "decode-1");
  EXPECT_TRUE(worker_->AwaitIdle());
}

TEST_F(PrefillServerTest, RefusesBadRequestsAndServesOn) {
  v1::PrefillRequest bad = Request(1, 10);
  bad.mutable_request()->add_prompt(1000);
  EXPECT_EQ(CodeOf(bad), absl::StatusCode::kInvalidArgument);
  bad = Request(1, 10);
  bad.mutable_request()->mutable_sampling()->set_temperature(-1);
  EXPECT_EQ(CodeOf(bad), absl::StatusCode::kInvalidArgument);
  bad = Request(1, 10);
  bad.mutable_request()->set_max_tokens(1000);
  EXPECT_EQ(CodeOf(bad), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(v1::PrefillRequest()), absl::StatusCode::kInvalidArgument);
  // What only the transfer side can see ends the leg just as well.
  bad = Request(2, 10);
  bad.mutable_landing()->mutable_wanted(0)->set_token_end(11);
  EXPECT_EQ(CodeOf(bad), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(worker_->Prefill(Request(3, 10))->Next().has_value());
  EXPECT_TRUE(worker_->AwaitIdle());
}

TEST_F(PrefillServerTest, ACancelDuringAStepFreesItsBlocks) {
  gate_.Close();
  const auto leg = worker_->Prefill(Request(1, 300));
  gate_.AwaitStep();
  leg->Cancel();
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kCancelled);
  while (drain_.snapshot().running > 0) std::this_thread::yield();  // until the service has heard of it
  gate_.Open();
  EXPECT_TRUE(worker_->AwaitIdle());
  EXPECT_EQ(metrics_.Get<Metric::kCancels>("computing").Value(), 1);
  EXPECT_EQ(metrics_.Get<Metric::kRequests>("CANCELLED", "").Value(), 1);
}

TEST_F(PrefillServerTest, ALegEndsAtItsDeadlineEvenDuringAStep) {
  gate_.Close();
  const auto first = worker_->Prefill(Request(1, 300), std::chrono::milliseconds(400));
  gate_.AwaitStep();
  const auto second = worker_->Prefill(Request(2, 20), std::chrono::milliseconds(400));
  EXPECT_EQ(first->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(second->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  gate_.Open();
  EXPECT_TRUE(worker_->AwaitIdle());
}

TEST_F(PrefillServerTest, AnOperatorAbortsByRequestId) {
  gate_.Close();
  const auto leg = worker_->Prefill(Request(7, 300));
  gate_.AwaitStep();
  bool found = false;
  std::thread operator_call([&] { found = worker_->Abort("request-7"); });
  gate_.Open();
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kAborted);
  operator_call.join();
  EXPECT_TRUE(found);
  EXPECT_FALSE(worker_->Abort("request-7"));
  EXPECT_TRUE(worker_->AwaitIdle());
}

TEST_F(PrefillServerTest, TellsWhatItIs) {
  const v1::GetServerInfoResponse info = worker_->Info();
  EXPECT_EQ(info.role(), v1::ROLE_PREFILL);
  EXPECT_EQ(info.instance_id(), server_->instance_id());
  EXPECT_EQ(info.instance_id().size(), 36);
  EXPECT_EQ(info.model().name(), "scripted");
  EXPECT_EQ(info.model().fingerprint(), engine_.info().fingerprint);
  EXPECT_EQ(info.limits().block_tokens(), 16);
  EXPECT_EQ(info.limits().kv_capacity_tokens(), engine_.kv().capacity_tokens());
  EXPECT_EQ(info.limits().max_running(), 2);
  ASSERT_EQ(info.limits().transports_size(), 1);
  EXPECT_EQ(info.limits().transports(0), "grpc");
}

TEST_F(PrefillServerTest, DrainsRefusingNewWorkWhileOldWorkEnds) {
  grpc::ClientContext health_context;
  const auto health = grpc::health::v1::Health::NewStub(CreateChannel(server_->address().ToString()));
  grpc::health::v1::HealthCheckRequest service;
  service.set_service("baton.v1.PrefillWorker");
  const auto watch = health->Watch(&health_context, service);
  grpc::health::v1::HealthCheckResponse health_now;
  ASSERT_TRUE(watch->Read(&health_now));
  EXPECT_EQ(health_now.status(), grpc::health::v1::HealthCheckResponse::SERVING);

  gate_.Close();
  const auto old_work = worker_->Prefill(Request(1, 100));
  gate_.AwaitStep();
  drain_.RequestDrain();
  std::thread serving([&] { server_->ServeUntilDrained({.timeout = absl::Seconds(60)}); });
  ASSERT_TRUE(watch->Read(&health_now));
  EXPECT_EQ(health_now.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  while (drain_.accepting()) std::this_thread::yield();
  const absl::Status refused = worker_->Prefill(Request(2, 10))->Finish();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), "DRAINING");
  gate_.Open();
  EXPECT_TRUE(old_work->Next()->has_first_token());
  old_work->Cancel();
  EXPECT_FALSE(old_work->Finish().ok());
  serving.join();
}

TEST_F(PrefillServerTest, MetricsMoveWithTheWork) {
  gate_.Close();
  v1::PrefillRequest retried = Request(1, 100);
  retried.mutable_attempt()->set_number(1);
  const auto leg = worker_->Prefill(retried);
  gate_.AwaitStep();
  EXPECT_GT(metrics_.Get<Metric::kKvBlocks>("free").Value(), 0);
  gate_.Open();
  EXPECT_TRUE(leg->Next().has_value());
  EXPECT_TRUE(worker_->Abort("request-1"));
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(worker_->AwaitIdle());
  EXPECT_EQ(metrics_.Get<Metric::kRequests>("ABORTED", "").Value(), 1);
  EXPECT_EQ(metrics_.Get<Metric::kRecomputedTokens>().Value(), 100);
  EXPECT_EQ(metrics_.Get<Metric::kRequestsRunning>().Value(), 0);
  const std::string text = metrics_.Text();
  EXPECT_NE(text.find("baton_prefill_seconds_count{model=\"scripted\",role=\"prefill\"} 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("baton_batch_size_count"), std::string::npos);
}

}  // namespace
}  // namespace baton
