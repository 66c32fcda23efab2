#include "common/control_service.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/error_details.h"
#include "common/grpc_channel.h"
#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "common/protocol_version.h"
#include "common/raw_service.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"
#include "common/version.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

class FixedProvider final : public ControlProvider {
 public:
  v1::GetServerInfoResponse ServerInfo() const override {
    v1::GetServerInfoResponse info;
    info.set_role(v1::ROLE_DECODE);
    info.set_instance_id("instance");
    return info;
  }
  std::vector<v1::ModelInfo> Models() const override {
    std::vector<v1::ModelInfo> models(2);
    models[0].set_name("first");
    models[1].set_name("second");
    return models;
  }
  v1::GetLoadResponse Load() const override {
    v1::GetLoadResponse load;
    load.set_requests_running(3);
    return load;
  }
  absl::StatusOr<v1::ListWorkersResponse> Workers() const override {
    return absl::UnimplementedError("ask the router");
  }
  void Abort(const std::string& request_id, std::function<void(absl::StatusOr<bool>)> done) override {
    if (request_id == "gone") return done(absl::UnavailableError("stopped"));
    done(request_id == "known");
  }
};

class ControlServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = GrpcServer::Create({}, {&service_}, &health_, &drain_, &clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::Control::NewStub(CreateChannel(server_->address().ToString()));
  }

  template <typename Response, typename Request>
  std::pair<absl::Status, Response> Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*,
                                                                                   const Request&, Response*),
                                         const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    return {FromGrpcStatus(status), response};
  }

  SteadyClock clock_;
  DrainState drain_;
  HealthService health_;
  FixedProvider provider_;
  ControlService service_{&provider_, &drain_};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Control::Stub> stub_;
};

TEST_F(ControlServiceTest, GetServerInfoAddsWhatEveryProcessKnows) {
  const auto [status, info] = Call(&v1::Control::Stub::GetServerInfo, v1::GetServerInfoRequest());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(info.role(), v1::ROLE_DECODE);
  EXPECT_EQ(info.instance_id(), "instance");
  EXPECT_EQ(info.version(), kVersion);
  EXPECT_EQ(info.protocol_min(), kOldestProtocolVersion);
  EXPECT_EQ(info.protocol_max(), kProtocolVersion);
  EXPECT_EQ(info.state(), v1::SERVER_STATE_SERVING);
}

TEST_F(ControlServiceTest, ModelsByNameAndByDefault) {
  EXPECT_EQ(Call(&v1::Control::Stub::ListModels, v1::ListModelsRequest()).second.models_size(), 2);
  v1::GetModelInfoRequest request;
  EXPECT_EQ(Call(&v1::Control::Stub::GetModelInfo, request).second.model().name(), "first");
  request.set_model("second");
  EXPECT_EQ(Call(&v1::Control::Stub::GetModelInfo, request).second.model().name(), "second");
  request.set_model("third");
  EXPECT_EQ(Call(&v1::Control::Stub::GetModelInfo, request).first.code(), absl::StatusCode::kNotFound);
}

TEST_F(ControlServiceTest, LoadAndWorkersAreTheProviders) {
  EXPECT_EQ(Call(&v1::Control::Stub::GetLoad, v1::GetLoadRequest()).second.requests_running(), 3);
  EXPECT_EQ(Call(&v1::Control::Stub::ListWorkers, v1::ListWorkersRequest()).first,
            absl::UnimplementedError("ask the router"));
}

TEST_F(ControlServiceTest, AbortSaysWhetherThereWasSuchARequest) {
  v1::AbortRequest request;
  EXPECT_EQ(Call(&v1::Control::Stub::Abort, request).first.code(), absl::StatusCode::kInvalidArgument);
  request.set_request_id("known");
  EXPECT_TRUE(Call(&v1::Control::Stub::Abort, request).second.found());
  request.set_request_id("unknown");
  const auto [status, response] = Call(&v1::Control::Stub::Abort, request);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(response.has_found());
  EXPECT_FALSE(response.found());
  request.set_request_id("gone");
  EXPECT_EQ(Call(&v1::Control::Stub::Abort, request).first.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ControlServiceTest, WhatDoesNotParseIsInvalid) {
  const auto call = [&](const char* method, const std::string& bytes) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    std::string response;
    return FromGrpcStatus(CallRaw(CreateChannel(server_->address().ToString()),
                                  StrCat("/baton.v1.Control/", absl::string_view(method)), &context, bytes,
                                  &response));
  };
  for (const char* method : {"GetServerInfo", "ListModels", "GetModelInfo", "GetLoad", "Abort"}) {
    EXPECT_EQ(call(method, "\xff").code(), absl::StatusCode::kInvalidArgument) << method;
  }
  EXPECT_EQ(call("GetModelInfo", "\n\1\xff"), InvalidField("model", "is not UTF-8"));
  EXPECT_EQ(call("Abort", "\n\1\xff"), InvalidField("request_id", "is not UTF-8"));
}

TEST_F(ControlServiceTest, DrainReportsUntilNothingIsLeft) {
  absl::StatusOr<DrainState::Work> first = drain_.Admit(), second = drain_.Admit();
  std::thread serving([&] { server_->ServeUntilDrained({.timeout = absl::Seconds(60)}); });
  grpc::ClientContext context;
  const auto reader = stub_->Drain(&context, v1::DrainRequest());
  v1::DrainResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.requests_left(), 2);
  EXPECT_FALSE(message.drained());
  const auto [status, info] = Call(&v1::Control::Stub::GetServerInfo, v1::GetServerInfoRequest());
  if (status.ok()) {
    EXPECT_EQ(info.state(), v1::SERVER_STATE_DRAINING);
  }
  *first = DrainState::Work();
  do {
    ASSERT_TRUE(reader->Read(&message));
  } while (message.requests_left() == 2);
  EXPECT_EQ(message.requests_left(), 1);
  *second = DrainState::Work();
  bool drained = false;
  while (reader->Read(&message)) drained = message.drained();
  EXPECT_TRUE(drained);
  EXPECT_EQ(message.requests_left(), 0);
  EXPECT_TRUE(reader->Finish().ok());
  serving.join();
}

TEST_F(ControlServiceTest, ADrainGoesOnWhenItsReaderLeaves) {
  {
    grpc::ClientContext context;
    const auto reader = stub_->Drain(&context, v1::DrainRequest());
    v1::DrainResponse message;
    ASSERT_TRUE(reader->Read(&message));
    // Whoever was told of the drain hears of it everywhere, though nobody has run it yet.
    const auto [status, info] = Call(&v1::Control::Stub::GetServerInfo, v1::GetServerInfoRequest());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(info.state(), v1::SERVER_STATE_DRAINING);
    context.TryCancel();
    reader->Finish();
  }
  server_->ServeUntilDrained({});
  EXPECT_FALSE(drain_.accepting());
}

}  // namespace
}  // namespace baton
