#include "common/credentials.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(Credentials, PlaintextAbroadNeedsTheOperatorsWord) {
  const HostPort loopback = *HostPort::Parse("localhost:1");
  const HostPort abroad = *HostPort::Parse("0.0.0.0:1");
  EXPECT_TRUE(MakeServerCredentials(loopback, false).ok());
  EXPECT_TRUE(MakeServerCredentials(abroad, true).ok());
  const absl::Status refused = MakeServerCredentials(abroad, false).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "listen: \"0.0.0.0:1\" can be reached from other machines and the connection is not encrypted; "
            "listen on "
            "loopback or give --allow-plaintext");
}

}  // namespace
}  // namespace baton
