#include "router/worker_registry.h"

#include <optional>

#include "common/protocol_version.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

v1::GetServerInfoResponse Info(v1::Role role, std::string instance, std::string fingerprint = "hash/f16") {
  v1::GetServerInfoResponse info;
  info.set_role(role);
  info.set_instance_id(std::move(instance));
  info.set_protocol_min(kOldestProtocolVersion);
  info.set_protocol_max(kProtocolVersion);
  info.set_state(v1::SERVER_STATE_SERVING);
  info.mutable_model()->set_fingerprint(std::move(fingerprint));
  info.mutable_model()->set_context_tokens(512);
  return info;
}

class WorkerRegistryTest : public ::testing::Test {
 protected:
  WorkerRegistryTest() { registry.Add("d0", v1::ROLE_DECODE); }
  v1::Worker Only() const { return registry.List().workers(0); }
  WorkerRegistry registry{"hash"};
};

TEST_F(WorkerRegistryTest, AWorkerServesOnceItHasSaidWhatItIs) {
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_CONNECTING);
  EXPECT_FALSE(registry.CanServe());
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"));
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  EXPECT_TRUE(registry.CanServe());
  EXPECT_EQ(registry.InstanceOf("d0"), "one");
}

TEST_F(WorkerRegistryTest, IncompatibleWorkersSayWhy) {
  registry.OnInfo("d0", Info(v1::ROLE_PREFILL, "one"));
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_INCOMPATIBLE);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one", "different/f16"));
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_INCOMPATIBLE);
  EXPECT_NE(Only().state_reason().find("different/f16"), std::string::npos);
  v1::GetServerInfoResponse newer = Info(v1::ROLE_DECODE, "one");
  newer.set_protocol_min(kProtocolVersion + 1);
  newer.set_protocol_max(kProtocolVersion + 1);
  registry.OnInfo("d0", newer);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_INCOMPATIBLE);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"));
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
}

TEST_F(WorkerRegistryTest, ALostWorkerIsSuspectUntilItAnswers) {
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "one"));
  registry.OnLost("d0", "an earlier instance", "reset");
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  registry.OnLost("d0", "one", "reset");
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SUSPECT);
  registry.OnInfo("d0", Info(v1::ROLE_DECODE, "two"));
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_SERVING);
  EXPECT_EQ(registry.InstanceOf("d0"), "two");
}

TEST_F(WorkerRegistryTest, AnAssignmentGivesBackExactlyOnce) {
  std::optional<Assignment> first = registry.Assign("d0", 100);
  Assignment second = registry.Assign("d0", 10);
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 110);
  EXPECT_EQ(registry.Snapshot()[0].assigned_requests, 2);
  first->ReleaseTokens();
  first->ReleaseTokens();
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 10);
  EXPECT_EQ(registry.Snapshot()[0].assigned_requests, 2);
  Assignment moved = std::move(second);
  second.Reset();
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 10);
  first.reset();
  moved = Assignment();
  EXPECT_EQ(registry.Snapshot()[0].assigned_tokens, 0);
  EXPECT_EQ(registry.Snapshot()[0].assigned_requests, 0);
}

TEST_F(WorkerRegistryTest, ARemovedWorkerIsForgottenWithItsLastRequest) {
  Assignment assignment = registry.Assign("d0", 1);
  registry.Remove("d0");
  EXPECT_TRUE(registry.Snapshot().empty());
  EXPECT_EQ(registry.List().workers_size(), 1);
  assignment.Reset();
  EXPECT_EQ(registry.List().workers_size(), 0);
}

TEST_F(WorkerRegistryTest, DrainingWorkersTakeNothingNew) {
  v1::GetServerInfoResponse info = Info(v1::ROLE_DECODE, "one");
  info.set_state(v1::SERVER_STATE_DRAINING);
  registry.OnInfo("d0", info);
  EXPECT_EQ(Only().state(), v1::WORKER_STATE_DRAINING);
  EXPECT_FALSE(registry.Snapshot()[0].serving);
}

}  // namespace
}  // namespace baton
