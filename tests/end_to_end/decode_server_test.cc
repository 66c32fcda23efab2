#include "decode_service/decode_server.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/metrics.h"
#include "common/raw_socket.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "tests/support/gated_engine.h"
#include "tests/support/leg_client.h"
#include "tests/support/leg_requests.h"
#include "tests/support/scripted_engine.h"

namespace baton {
namespace {

constexpr ScriptedEngine::Options kEngine = {.kv_bytes = 1 << 19, .context_tokens = 512};

std::vector<TokenId> Tokens(DecodeLeg* leg) {
  std::vector<TokenId> tokens;
  while (const std::optional<v1::DecodeEvent> event = leg->Next()) {
    for (const v1::LegToken& token : event->tokens().tokens()) tokens.push_back(token.id());
  }
  return tokens;
}

// A decode service over a scripted engine, on a port of its own, without a prefill service.
class DecodeServerTest : public testing::Test {
 protected:
  void SetUp() override {
    Start({});
    worker_ = std::make_unique<WorkerClient>(server_->address().ToString());
  }
  void Start(const GrpcServerOptions& options) {
    auto started = DecodeServer::Start(
        options, {.chunk_tokens = 64, .max_running = 4, .step_target = absl::Milliseconds(20)}, "",
        {GrpcBackend()},
        {.engine = &gate_,
         .device = device_.get(),
         .clock = &clock_,
         .random = &random_,
         .metrics = &metrics_,
         .drain = &drain_,
         .stall_timeout = stall_timeout_});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  using HealthStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;
  static HealthStatus Health(const std::string& address, const char* service) {
    const auto health = grpc::health::v1::Health::NewStub(CreateChannel(address));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(After(std::chrono::seconds(30)));
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_TRUE(health->Check(&context, request, &response).ok()) << service;
    return response.status();
  }
  bool AwaitHealth(HealthStatus wanted) {
    const auto end = After(std::chrono::seconds(20));
    do {
      if (Health(server_->address().ToString(), "baton.v1.DecodeWorker") == wanted) return true;
    } while (std::chrono::system_clock::now() < end);
    return false;
  }
  void TearDown() override {
    gate_.Open();
    server_.reset();
    EXPECT_TRUE(engine_.kv().CheckAllFree().ok()) << engine_.kv().CheckAllFree();
  }

  absl::Duration stall_timeout_ = absl::Seconds(60);
  SteadyClock clock_;
  SystemRandomSource random_;
  DrainState drain_;
  ScriptedEngine engine_{kEngine};
  GatedEngine gate_{&engine_};
  std::unique_ptr<Device> device_ = CreateCpuDevice();
  Metrics metrics_{"decode", "scripted"};
  std::unique_ptr<DecodeServer> server_;
  std::unique_ptr<WorkerClient> worker_;
};

TEST_F(DecodeServerTest, StreamsALocalAnswer) {
  const auto leg = worker_->Decode(MakeLocalRequest(1, LetterPrompt(100), 20));
  EXPECT_EQ(Tokens(leg.get()), ScriptedEngine::ExpectedAnswer(kEngine, LetterPrompt(100), 20));
  EXPECT_TRUE(leg->Finish().ok()) << leg->Finish();
  EXPECT_TRUE(worker_->AwaitIdle());
  EXPECT_EQ(metrics_.Get<Metric::kRequests>("OK", "length").Value(), 1);
}

TEST_F(DecodeServerTest, AnswersManyLegsAtOnce) {
  std::vector<std::unique_ptr<DecodeLeg>> legs;
  for (uint8_t i = 1; i <= 4; ++i)
    legs.push_back(worker_->Decode(MakeLocalRequest(i, LetterPrompt(20 * i, i), 12)));
  for (uint8_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(Tokens(legs[i - 1].get()),
              ScriptedEngine::ExpectedAnswer(kEngine, LetterPrompt(20 * i, i), 12));
  }
}

TEST_F(DecodeServerTest, AReservationNamesTheAddressThatItsServerListensOn) {
  const auto leg = worker_->Decode(MakeHandoffRequest(1, LetterPrompt(50), 8, "prefill-1"));
  const std::optional<v1::DecodeEvent> event = leg->Next();
  ASSERT_TRUE(event.has_value()) << leg->Finish();
  const v1::Landing& landing = event->reserved().landing();
  EXPECT_EQ(landing.address(), server_->address().ToString());
  EXPECT_EQ(landing.instance_id(), server_->instance_id());
  EXPECT_EQ(landing.ticket().size(), 16);
  EXPECT_EQ(landing.transports(0), "grpc");
  EXPECT_TRUE(worker_->AwaitLoad([](const v1::GetLoadResponse& load) {
    return load.requests_waiting() == 1 && load.blocks(0).landing() > 0;
  }));
  // Waiting is not silence.
  EXPECT_TRUE(leg->NextProgress().has_value());
  leg->Cancel();
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(worker_->AwaitIdle());
  EXPECT_EQ(metrics_.Get<Metric::kCancels>("landing").Value(), 1);
}

TEST_F(DecodeServerTest, ALandingThatNobodyOpensEndsAtTheDeadline) {
  const auto leg = worker_->Decode(MakeHandoffRequest(1, LetterPrompt(50), 8, "prefill-1"),
                                   std::chrono::milliseconds(300));
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(worker_->AwaitIdle());
}

TEST_F(DecodeServerTest, ACancelDuringAStepFreesItsBlocksAndDisturbsNobody) {
  const auto other = worker_->Decode(MakeLocalRequest(1, LetterPrompt(40), 30));
  ASSERT_TRUE(other->Next().has_value());
  gate_.Close();
  const auto leg = worker_->Decode(MakeLocalRequest(2, LetterPrompt(300), 30));
  gate_.AwaitStep();
  leg->Cancel();
  EXPECT_EQ(leg->Finish().code(), absl::StatusCode::kCancelled);
  gate_.Open();
  EXPECT_EQ(Tokens(other.get()), ScriptedEngine::ExpectedAnswer(kEngine, LetterPrompt(40), 30));
  EXPECT_TRUE(worker_->AwaitIdle());
}

TEST_F(DecodeServerTest, AFullPoolRefusesAndTakesAgainWhenItHasRoom) {
  std::vector<std::unique_ptr<DecodeLeg>> legs;
  std::optional<v1::DecodeEvent> event;
  do {
    ASSERT_LT(legs.size(), 5);
    legs.push_back(worker_->Decode(
        MakeHandoffRequest(static_cast<uint8_t>(legs.size() + 1), LetterPrompt(400), 100, "prefill-1")));
    event = legs.back()->Next();
  } while (event.has_value());
  const absl::Status refused = legs.back()->Finish();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetRetryDelay(refused).has_value());
  for (const auto& leg : legs) leg->Cancel();
  ASSERT_TRUE(worker_->AwaitIdle());
  EXPECT_TRUE(
      worker_->Decode(MakeHandoffRequest(9, LetterPrompt(400), 100, "prefill-1"))->Next().has_value());
}

TEST_F(DecodeServerTest, RefusesBadRequestsAndServesOn) {
  const auto code = [&](const v1::DecodeRequest& request) {
    return worker_->Decode(request)->Finish().code();
  };
  v1::DecodeRequest bad = MakeLocalRequest(1, LetterPrompt(10), 8);
  bad.clear_source();
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = MakeLocalRequest(1, LetterPrompt(10), 503);
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = MakeLocalRequest(1, {}, 5);
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  const auto first = worker_->Decode(MakeHandoffRequest(1, LetterPrompt(10), 8, "p"));
  ASSERT_TRUE(first->Next().has_value());
  EXPECT_EQ(code(MakeHandoffRequest(1, LetterPrompt(10), 8, "p")), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(worker_->Abort("request-1"));
  EXPECT_EQ(first->Finish().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(code(MakeLocalRequest(2, LetterPrompt(10), 8)), absl::StatusCode::kOk);
}

TEST_F(DecodeServerTest, TellsWhatItIsAndWhatItServes) {
  const v1::GetServerInfoResponse info = worker_->Info();
  EXPECT_EQ(info.role(), v1::ROLE_DECODE);
  EXPECT_EQ(info.instance_id(), server_->instance_id());
  EXPECT_EQ(info.limits().max_running(), 4);
  EXPECT_EQ(info.limits().transports(0), "grpc");
  for (const char* service : {"", "baton.v1.DecodeWorker", "baton.v1.KvTransfer", "baton.v1.Control"}) {
    EXPECT_EQ(Health(server_->address().ToString(), service), grpc::health::v1::HealthCheckResponse::SERVING);
  }
}

TEST_F(DecodeServerTest, ALegThatWasMeantForAnotherProcessIsRefused) {
  v1::DecodeRequest request = MakeLocalRequest(1, LetterPrompt(10), 8);
  request.mutable_attempt()->set_instance_id("the one before");
  const absl::Status refused = worker_->Decode(request)->Finish();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), kReasonWrongInstance);
  request.mutable_attempt()->set_instance_id(server_->instance_id());
  EXPECT_TRUE(worker_->Decode(request)->Finish().ok());
}

TEST_F(DecodeServerTest, HandsBackWhatItsDrainHasNoTimeFor) {
  gate_.Close();
  const auto leg = worker_->Decode(MakeLocalRequest(1, LetterPrompt(60), 20));
  gate_.AwaitStep();
  drain_.RequestDrain();
  std::thread serving([&] {
    server_->ServeUntilDrained({.timeout = absl::Milliseconds(1), .hand_back = absl::Seconds(60)});
  });
  while (drain_.snapshot().phase < ServingPhase::kHandingBack) std::this_thread::yield();
  gate_.Open();
  const absl::Status moved = leg->Finish();
  EXPECT_EQ(moved.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(moved), kReasonDraining);
  serving.join();
}

class StalledDecodeServerTest : public DecodeServerTest {
 protected:
  StalledDecodeServerTest() { stall_timeout_ = absl::Milliseconds(100); }
};

TEST_F(StalledDecodeServerTest, AStepThatDoesNotEndIsSeenInItsHealthUntilItDoes) {
  ASSERT_TRUE(AwaitHealth(grpc::health::v1::HealthCheckResponse::SERVING));
  gate_.Close();
  const auto leg = worker_->Decode(MakeLocalRequest(1, LetterPrompt(60), 20));
  gate_.AwaitStep();
  EXPECT_TRUE(AwaitHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING));
  EXPECT_GE(metrics_.Get<Metric::kLoopStalls>().Value(), 1);
  gate_.Open();
  EXPECT_EQ(Tokens(leg.get()), ScriptedEngine::ExpectedAnswer(kEngine, LetterPrompt(60), 20));
  EXPECT_TRUE(AwaitHealth(grpc::health::v1::HealthCheckResponse::SERVING));
}

class ColdDecodeServerTest : public DecodeServerTest {
 protected:
  void SetUp() override {}
};

TEST_F(ColdDecodeServerTest, TakesNoWorkUntilItIsWarm) {
  const std::string address = "127.0.0.1:" + std::to_string(RawSocket::Listen().port());
  gate_.Close();
  std::thread starting([&] { Start({.listen = address}); });
  gate_.AwaitStep();
  EXPECT_EQ(Health(address, "baton.v1.DecodeWorker"), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health(address, ""), grpc::health::v1::HealthCheckResponse::SERVING);
  gate_.Open();
  starting.join();
  EXPECT_EQ(Health(address, "baton.v1.DecodeWorker"), grpc::health::v1::HealthCheckResponse::SERVING);
}

TEST_F(DecodeServerTest, DrainsWithItsStreamsFinishing) {
  gate_.Close();
  const auto leg = worker_->Decode(MakeLocalRequest(1, LetterPrompt(60), 20));
  gate_.AwaitStep();
  drain_.RequestDrain();
  std::thread serving([&] { server_->ServeUntilDrained({.timeout = absl::Seconds(60)}); });
  while (drain_.accepting()) std::this_thread::yield();
  const absl::Status refused = worker_->Decode(MakeLocalRequest(2, LetterPrompt(10), 8))->Finish();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), "DRAINING");
  gate_.Open();
  EXPECT_EQ(Tokens(leg.get()), ScriptedEngine::ExpectedAnswer(kEngine, LetterPrompt(60), 20));
  EXPECT_TRUE(leg->Finish().ok());
  serving.join();
}

}  // namespace
}  // namespace baton
