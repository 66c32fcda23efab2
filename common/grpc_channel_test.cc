#include "common/grpc_channel.h"

#include <set>
#include <string>
#include <thread>

#include "common/raw_service.h"
#include "common/raw_socket.h"
#include "common/steady_clock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

std::string Target(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

TEST(GrpcChannel, EachChannelHasItsOwnConnection) {
  RawService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::set<std::string> peers;
  const auto channels = CreateChannels(Target(port), 3);
  ASSERT_EQ(channels.size(), 3u);
  for (int round = 0; round < 2; ++round) {
    for (const auto& channel : channels) {
      grpc::ClientContext context;
      std::string peer;
      ASSERT_TRUE(CallRaw(channel, RawService::kPeer, &context, "", &peer).ok());
      peers.insert(peer);
    }
  }
  EXPECT_EQ(peers.size(), 3u);
}

TEST(GrpcChannel, AnUnreachablePeerFailsAtOnce) {
  uint16_t port = 0;
  {
    port = RawSocket::Listen().port();
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  std::string response;
  EXPECT_EQ(CallRaw(CreateChannel(Target(port)), RawService::kEcho, &context, "", &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST(GrpcChannel, ASilentServerIsNoticedWithinThreeSeconds) {
  RawSocket listener = RawSocket::Listen();
  const SteadyClock clock;
  absl::Duration silence;
  std::thread caller([&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    std::string response;
    const absl::Time start = clock.Now();
    EXPECT_EQ(CallRaw(CreateChannel(Target(listener.port())), RawService::kHang, &context, "", &response)
                  .error_code(),
              grpc::StatusCode::UNAVAILABLE);
    silence = clock.Now() - start;
  });
  RawSocket server = listener.Accept();
  // An empty SETTINGS frame, so that the call starts; then nothing more.
  server.Send(std::string_view("\0\0\0\x04\0\0\0\0\0", 9));
  EXPECT_LT(server.TimeUntilClosed(absl::Seconds(20)), absl::Seconds(3));
  caller.join();
  EXPECT_GT(silence, absl::Seconds(1));
  EXPECT_LT(silence, absl::Seconds(3));
}

}  // namespace
}  // namespace baton
