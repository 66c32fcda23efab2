#include "common/grpc_server.h"

#include <future>
#include <optional>
#include <string>
#include <thread>

#include "common/grpc_channel.h"
#include "common/raw_service.h"
#include "common/raw_socket.h"
#include "common/steady_clock.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using testing::HasSubstr;

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kListServices[] = "\x3a\x01*";  // ServerReflectionRequest{list_services: "*"}

class GrpcServerTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<GrpcServer>> Create(const GrpcServerOptions& options) {
    return GrpcServer::Create(options, {&raw_}, &health_, &drain_, &clock_);
  }

  void Start(const GrpcServerOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<GrpcServer>> server = Create(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = CreateChannel(server_->address().ToString());
  }

  grpc::Status Call(const std::string& method, const std::string& request, std::string* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return CallRaw(channel_, method, &context, request, response);
  }

  HealthCheckResponse::ServingStatus Check(const std::string& service) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    EXPECT_TRUE(Health::NewStub(channel_)->Check(&context, request, &response).ok());
    return response.status();
  }

  const SteadyClock clock_;
  DrainState drain_;
  HealthService health_;
  std::promise<void> hanging_;
  RawService raw_{[this] { hanging_.set_value(); }};
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(GrpcServerTest, ServesHealthAndServicesOnAFreePort) {
  Start();
  EXPECT_NE(server_->address().port, 0);
  EXPECT_EQ(Check(""), HealthCheckResponse::SERVING);
  std::string response;
  ASSERT_TRUE(Call(RawService::kEcho, "hello", &response).ok());
  EXPECT_EQ(response, "hello");
}

TEST_F(GrpcServerTest, MessagesPassUpTo64MiBAndNoFurther) {
  Start();
  const std::string largest(64 << 20, 'x');
  std::string response;
  const grpc::Status status = Call(RawService::kEcho, largest, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.size(), largest.size());
  EXPECT_EQ(Call(RawService::kEcho, largest + "x", &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcServerTest, ReflectionCanBeTurnedOff) {
  Start();
  std::string response;
  ASSERT_TRUE(Call(kReflection, kListServices, &response).ok());
  EXPECT_THAT(response, HasSubstr("grpc.health.v1.Health"));
  server_.reset();
  Start({.reflection = false});
  EXPECT_EQ(Call(kReflection, kListServices, &response).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GrpcServerTest, RefusesBadAddressesTakenPortsAndPlaintextAbroad) {
  EXPECT_EQ(Create({.listen = "nowhere"}).status(),
            absl::InvalidArgumentError("listen: \"nowhere\" is not host:port with a port from 0 to 65535"));
  EXPECT_EQ(Create({.listen = "0.0.0.0:0"}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Create({.listen = "0.0.0.0:0", .allow_plaintext = true}).ok());
  Start();
  const absl::Status taken = Create({.listen = server_->address().ToString()}).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), HasSubstr(server_->address().ToString()));
}

TEST_F(GrpcServerTest, DrainsInOrder) {
  Start();
  health_.SetServing("service", true);
  std::optional<DrainState::Work> work = *drain_.Admit();
  std::promise<void> refusing;
  const DrainState::ListenerId listener = drain_.Subscribe([&](const DrainState::Snapshot& snapshot) {
    if (snapshot.phase == ServingPhase::kRefusing && snapshot.running == 1) refusing.set_value();
  });
  std::promise<void> ended;
  std::thread serving([&] {
    server_->ServeUntilDrained({.timeout = absl::Hours(1)});
    ended.set_value();
  });
  EXPECT_EQ(Check("service"), HealthCheckResponse::SERVING);
  drain_.RequestDrain();
  refusing.get_future().wait();
  drain_.Unsubscribe(listener);
  EXPECT_FALSE(drain_.Admit().ok());
  std::string response;
  EXPECT_TRUE(Call(RawService::kEcho, "still there", &response).ok())
      << "the server answers until work has ended";
  work.reset();
  const absl::Time released = clock_.Now();
  ended.get_future().wait();
  EXPECT_LT(clock_.Now() - released, absl::Seconds(1)) << "nothing holds the shutdown up";
  serving.join();
  EXPECT_EQ(Call(RawService::kEcho, "gone", &response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcServerTest, AHealthWatchDoesNotHoldTheShutdownUp) {
  Start();
  grpc::ClientContext context;
  const auto stream = Health::NewStub(channel_)->Watch(&context, HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(stream->Read(&response));
  drain_.RequestDrain();
  const absl::Time start = clock_.Now();
  server_->ServeUntilDrained({});
  EXPECT_LT(clock_.Now() - start, absl::Milliseconds(900));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(stream->Read(&response));
}

TEST_F(GrpcServerTest, WhatOutlivesTheTimeoutIsCancelledAndAHurryCancelsAtOnce) {
  Start();
  const absl::StatusOr<DrainState::Work> work = drain_.Admit();
  std::thread caller([this] {
    std::string response;
    const grpc::Status status = Call(RawService::kHang, "", &response);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  });
  hanging_.get_future().wait();
  drain_.Hurry();
  const absl::Time start = clock_.Now();
  server_->ServeUntilDrained({.delay = absl::Hours(1), .timeout = absl::Hours(1)});
  EXPECT_LT(clock_.Now() - start, absl::Milliseconds(900));
  caller.join();
}

TEST_F(GrpcServerTest, ASilentPeerIsCutOffWithinThreeSeconds) {
  Start({.port = PortRole::kDecode});
  RawSocket client = RawSocket::Connect(server_->address().port);
  // The preface and an empty SETTINGS frame; then not even a ping is answered.
  client.Send(std::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33));
  const absl::Duration silence = client.TimeUntilClosed(absl::Seconds(20));
  EXPECT_GT(silence, absl::Seconds(1));
  EXPECT_LT(silence, absl::Seconds(3));
}

}  // namespace
}  // namespace baton
