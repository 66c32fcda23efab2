#include "common/host_port.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(HostPort, ParsesAndPrints) {
  for (const char* text :
       {"localhost:0", "127.0.0.1:7600", "[::1]:65535", "worker-0.decode.svc:80", "[::]:1"}) {
    const absl::StatusOr<HostPort> parsed = HostPort::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->ToString(), text);
  }
  EXPECT_EQ(HostPort::Parse("[::1]:65535")->host, "::1");
  EXPECT_EQ(HostPort::Parse("[::1]:65535")->port, 65535);
}

TEST(HostPort, RefusesTheRest) {
  for (const char* text :
       {"", ":", "a", ":1", "a:", "a:b", "a:-1", "a:+1", "a: 1", "a:65536", "a:99999999999", "::1:1", "[]:1",
        "[a]:1", "a b:1", "a/b:1", "unix:/a:1", "a:1x"}) {
    const absl::Status status = HostPort::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message(), "\"" + std::string(text) + "\" is not host:port with a port from 0 to 65535");
  }
}

TEST(HostPort, KnowsLoopback) {
  for (const char* text : {"localhost:1", "127.0.0.1:1", "127.255.0.3:1", "[::1]:1"}) {
    EXPECT_TRUE(HostPort::Parse(text)->IsLoopback()) << text;
  }
  for (const char* text :
       {"0.0.0.0:1", "128.0.0.1:1", "[::]:1", "localhost.evil:1", "127.0.0.1.evil:1", "[::2]:1"}) {
    EXPECT_FALSE(HostPort::Parse(text)->IsLoopback()) << text;
  }
}

TEST(HostPort, TheAddressOfEveryInterface) {
  EXPECT_TRUE(HostPort::Parse("0.0.0.0:1")->IsUnspecified());
  EXPECT_TRUE(HostPort::Parse("[::]:1")->IsUnspecified());
  for (const char* text : {"127.0.0.1:1", "[::1]:1", "0.0.0.1:1", "host:1"}) {
    EXPECT_FALSE(HostPort::Parse(text)->IsUnspecified()) << text;
  }
}

}  // namespace
}  // namespace baton
