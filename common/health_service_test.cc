#include "common/health_service.h"

#include <chrono>
#include <memory>
#include <string>

#include "grpcpp/client_context.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// A Watch stream read step by step.
class WatchCall {
 public:
  WatchCall(Health::Stub* stub, const std::string& service) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    HealthCheckRequest request;
    request.set_service(service);
    reader_ = stub->Watch(&context_, request);
  }

  // UNKNOWN at the end of the stream: the service never sends it.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return reader_->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }
  grpc::StatusCode Finish() { return reader_->Finish().error_code(); }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

class HealthServiceTest : public testing::Test {
 protected:
  HealthServiceTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    stub_ = Health::NewStub(server_->InProcessChannel({}));
  }

  grpc::Status Check(const std::string& service, HealthCheckResponse* response) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    return stub_->Check(&context, request, response);
  }
  HealthCheckResponse::ServingStatus Check(const std::string& service) {
    HealthCheckResponse response;
    EXPECT_TRUE(Check(service, &response).ok());
    return response.status();
  }

  HealthService health_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, CheckTellsProcessAndServicesApart) {
  EXPECT_EQ(Check(""), HealthCheckResponse::SERVING);
  HealthCheckResponse response;
  EXPECT_EQ(Check("a", &response).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Check(std::string(2000, 'a'), &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  health_.SetServing("a", false);
  EXPECT_EQ(Check("a"), HealthCheckResponse::NOT_SERVING);
  health_.SetServing("a", true);
  EXPECT_EQ(Check("a"), HealthCheckResponse::SERVING);
  health_.StartDrain();
  EXPECT_EQ(Check("a"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(""), HealthCheckResponse::SERVING) << "a draining process is alive";
  health_.Stop();
  EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, WatchSendsTheStatusAtOnceAndEachChange) {
  WatchCall watch(stub_.get(), "a");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  health_.SetServing("a", false);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  health_.SetServing("a", false);
  health_.SetServing("b", true);
  health_.SetServing("a", true);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING) << "what is no change is not sent";
  watch.Cancel();
  EXPECT_EQ(watch.Finish(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthServiceTest, ADrainIsToldAndTheStreamClosed) {
  health_.SetServing("a", true);
  WatchCall process(stub_.get(), "");
  WatchCall service(stub_.get(), "a");
  EXPECT_EQ(process.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(service.Next(), HealthCheckResponse::SERVING);
  health_.StartDrain();
  EXPECT_EQ(service.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(service.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(service.Finish(), grpc::StatusCode::UNAVAILABLE);
  health_.Stop();
  EXPECT_EQ(process.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(process.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(process.Finish(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, AWatchThatComesDuringADrainIsClosedToo) {
  health_.SetServing("a", true);
  health_.StartDrain();
  WatchCall watch(stub_.get(), "a");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watch.Finish(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, WatchRefusesALongName) {
  WatchCall watch(stub_.get(), std::string(2000, 'a'));
  EXPECT_EQ(watch.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watch.Finish(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace baton
