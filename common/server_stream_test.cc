#include "common/server_stream.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baton/v1/control.grpc.pb.h"
#include "common/error_details.h"
#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "common/mutex.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using Stream = ServerStream<v1::DrainResponse>;

v1::DrainResponse Message(uint32_t number) {
  v1::DrainResponse message;
  message.set_requests_left(number);
  return message;
}

// A flag that threads of gRPC raise.
class Event {
 public:
  void Raise() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  // False when nothing raised it for ten seconds.
  bool Await() {
    MutexLock lock(&mutex_);
    while (count_ == 0) {
      if (!changed_.WaitFor(&mutex_, absl::Seconds(10))) break;
    }
    return count_ > 0;
  }
  int count() {
    MutexLock lock(&mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Serves one server-streaming method with what a test does to its stream before the method returns.
class StreamService final : public v1::Control::CallbackService {
 public:
  grpc::ServerWriteReactor<v1::DrainResponse>* Drain(grpc::CallbackServerContext*,
                                                     const v1::DrainRequest*) override {
    const auto stream = on_stream();
    return stream->reactor();
  }

  std::function<void(std::shared_ptr<Stream>)> on_call;
  // Makes the stream, and does with it what on_call says.
  std::function<std::shared_ptr<Stream>()> on_stream = [this] {
    auto stream = Stream::Create(
        {.max_queued = 3, .on_cancel = [this] { cancelled.Raise(); }, .on_done = [this] { done.Raise(); }});
    on_call(stream);
    return stream;
  };
  Event cancelled;
  Event done;
};

class ServerStreamTest : public testing::Test {
 protected:
  ServerStreamTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::Control::NewStub(CreateChannel("127.0.0.1:" + std::to_string(port)));
  }
  ~ServerStreamTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  struct Outcome {
    std::vector<uint32_t> numbers;
    absl::Status status;
  };
  Outcome Call() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const auto reader = stub_->Drain(&context, v1::DrainRequest());
    Outcome outcome;
    v1::DrainResponse message;
    while (reader->Read(&message)) outcome.numbers.push_back(message.requests_left());
    outcome.status = FromGrpcStatus(reader->Finish());
    return outcome;
  }

  StreamService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Control::Stub> stub_;
};

TEST_F(ServerStreamTest, WritesInOrderThenFinishes) {
  service_.on_call = [](const std::shared_ptr<Stream>& stream) {
    for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(stream->Write(Message(i)));
    stream->Finish(absl::NotFoundError("over"));
    EXPECT_TRUE(stream->Write(Message(9)));  // too late, and no mistake
    stream->Finish(absl::OkStatus());
  };
  const Outcome outcome = Call();
  EXPECT_EQ(outcome.numbers, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(outcome.status, absl::NotFoundError("over"));
  EXPECT_TRUE(service_.done.Await());
  EXPECT_EQ(service_.cancelled.count(), 0);
}

TEST_F(ServerStreamTest, SaysWhenItsReaderIsTooSlowAndCutsBehindTheWriteInFlight) {
  service_.on_call = [](const std::shared_ptr<Stream>& stream) {
    // No write can end before the method has returned: one is in flight, three wait.
    for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(stream->Write(Message(i)));
    EXPECT_FALSE(stream->Write(Message(4)));
    stream->Cut(WithErrorInfo(absl::ResourceExhaustedError("too slow"), "SLOW_READER"));
  };
  const Outcome outcome = Call();
  EXPECT_EQ(outcome.numbers, (std::vector<uint32_t>{0}));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(outcome.status), "SLOW_READER");
  EXPECT_TRUE(service_.done.Await());
}

TEST_F(ServerStreamTest, TakesWritesLongAfterTheMethodHasReturned) {
  std::shared_ptr<Stream> kept;
  Event called;
  service_.on_call = [&](const std::shared_ptr<Stream>& stream) {
    kept = stream;
    called.Raise();
  };
  grpc::ClientContext context;
  const auto reader = stub_->Drain(&context, v1::DrainRequest());
  ASSERT_TRUE(called.Await());
  v1::DrainResponse message;
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(kept->Write(Message(i)));
    ASSERT_TRUE(reader->Read(&message));
    EXPECT_EQ(message.requests_left(), i);
  }
  kept->Finish(absl::OkStatus());
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServerStreamTest, ACancelledCallEndsByItselfAndTellsItsOwnerOnce) {
  std::shared_ptr<Stream> kept;
  Event called;
  service_.on_call = [&](const std::shared_ptr<Stream>& stream) {
    kept = stream;
    called.Raise();
  };
  grpc::ClientContext context;
  const auto reader = stub_->Drain(&context, v1::DrainRequest());
  ASSERT_TRUE(called.Await());
  context.TryCancel();
  EXPECT_TRUE(service_.cancelled.Await());
  EXPECT_TRUE(service_.done.Await());
  EXPECT_EQ(service_.cancelled.count(), 1);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(kept->Write(Message(1)));  // the owner has not heard yet
  kept->Finish(absl::OkStatus());
}

TEST_F(ServerStreamTest, AWriteThatFailsTellsTheOwnerOnce) {
  // Whether the write fails first or the cancel is heard first is the transport's choice: both come to pass.
  for (int i = 0; i < 50; ++i) {
    Event called, cancelled, done, gone;
    service_.on_stream = [&] {
      const auto stream =
          Stream::Create({.on_cancel = [&] { cancelled.Raise(); }, .on_done = [&] { done.Raise(); }});
      stream->Write(Message(0));  // gRPC sees it when the method has returned
      called.Raise();
      EXPECT_TRUE(gone.Await());
      return stream;
    };
    grpc::ClientContext context;
    const auto reader = stub_->Drain(&context, v1::DrainRequest());
    ASSERT_TRUE(called.Await());
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    gone.Raise();
    EXPECT_TRUE(done.Await());
    EXPECT_TRUE(cancelled.Await());
    EXPECT_EQ(cancelled.count(), 1);
  }
}

}  // namespace
}  // namespace baton
