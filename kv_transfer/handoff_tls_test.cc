// A handoff between certificates: a landing is for the two peers that it names, over real TLS.

#include <future>
#include <memory>

#include "common/credentials.h"
#include "common/grpc_channel.h"
#include "common/grpc_server.h"
#include "common/health_service.h"
#include "common/seeded_random_source.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"
#include "gtest/gtest.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/handoff_receiver.h"
#include "kv_transfer/handoff_sender.h"
#include "kv_transfer/landing.h"
#include "kv_transfer/pool_filler.h"
#include "tests/support/test_certificates.h"

namespace baton {
namespace {

constexpr uint32_t kPrompt = 40;
constexpr uint32_t kSeed = 4;
constexpr char kPrefix[] = "spiffe://baton.local/";

KvGeometry Geometry() { return {KvType::kF16, 16, {{.layers = {0, 1}, .kv_heads = 2, .head_dim = 32}}}; }

std::string Identity(const char* path) { return StrCat(kPrefix, absl::string_view(path)); }

struct Case {
  const char* name;
  const char* sender;  // in the certificate
  const char* server;
  const char* landing_for;  // the prefill worker that the router named
  const char* landing_at;   // the decode worker that made the landing
  absl::StatusCode expected;
};

class HandoffTlsTest : public testing::TestWithParam<Case> {
 protected:
  std::shared_ptr<const Credentials> CredentialsOf(const char* path) {
    const TlsFiles files = WriteTlsFiles("peer", authority_, authority_, TestSubject(Identity(path)));
    return *Credentials::Create({.tls = files}, &clock_);
  }

  // Sends the prompt's KV with the certificate of `path` and returns how that ended.
  absl::Status Send(const char* path, const HandoffSpec& spec) {
    std::promise<absl::Status> ended;
    HandoffSender sender(
        {.instance_id = "prefill",
         .transports = {GrpcBackend()},
         .pools = pools_[0].get(),
         .device = device_.get(),
         .clock = &clock_,
         .channels =
             [credentials = CredentialsOf(path)](const std::string& address, const std::string& identity) {
               return ChannelTo(address, credentials->ForPeer(CallerRole::kDecode, identity));
             },
         .on_finished = [&ended](HandoffResult result) { ended.set_value(result.status); }});
    SequenceKv kv = *pools_[0]->Reserve(kPrompt);
    PoolFiller(pools_[0].get(), &kv).Fill(0, wanted_[0], kSeed);
    sender.Start(spec, PinnedKv::Of(kv));
    sender.Computed(spec.transfer_id, {0, 2}, {0, kPrompt});
    v1::LandCommit commit;
    commit.mutable_first_token()->set_id(11);
    sender.PromptDone(spec.transfer_id, commit);
    std::future<absl::Status> status = ended.get_future();
    if (status.wait_for(std::chrono::seconds(20)) != std::future_status::ready) return absl::UnknownError("");
    return status.get();
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  const SteadyClock clock_;
  SeededRandomSource random_{8};
  const CertificateAuthority authority_ = MakeTestAuthority();
  const std::unique_ptr<KvPools> pools_[2] = {// of prefill, of decode
                                              *KvPools::Create(device_.get(), Geometry(), 1 << 20, 64, 64),
                                              *KvPools::Create(device_.get(), Geometry(), 1 << 20, 64, 64)};
  const std::vector<TokenRange> wanted_ = WantedAfter(Geometry(), kPrompt);
};

TEST_P(HandoffTlsTest, ALandingIsForThePeersItNames) {
  const Case& c = GetParam();
  std::promise<landing::Landed> landed;
  HandoffReceiver receiver({.transports = {GrpcBackend()},
                            .pools = pools_[1].get(),
                            .device = device_.get(),
                            .clock = &clock_,
                            .on_landed = [&](landing::Landed l) { landed.set_value(std::move(l)); },
                            .on_failed = [](const landing::LandingFailed& f) { ADD_FAILURE() << f.status; }});
  DrainState drain;
  HealthService health;
  auto server = GrpcServer::Create({.port = PortRole::kDecode, .credentials = CredentialsOf(c.server)},
                                   {receiver.service()}, &health, &drain, &clock_);
  ASSERT_TRUE(server.ok()) << server.status();

  LandingSpec landing;
  landing.ticket = MintTicket(random_);
  landing.transfer_id = TransferId::Mint(random_);
  landing.prefill_instance_id = "prefill";
  landing.prefill_identity = Identity(c.landing_for);
  landing.kv = *pools_[1]->Reserve(kPrompt);
  landing.kv.BeginLanding();
  landing.wanted = wanted_;
  landing.expires = clock_.Now() + absl::Seconds(60);
  HandoffSpec spec;
  spec.transfer_id = landing.transfer_id;
  spec.landing = MakeLanding(landing.ticket, "decode", (*server)->address().ToString(), receiver.transports(),
                             Geometry(), wanted_);
  spec.landing.set_identity(Identity(c.landing_at));
  spec.prompt_tokens = kPrompt;
  spec.deadline = clock_.Now() + absl::Seconds(60);
  receiver.Add(std::move(landing));

  const absl::Status status = Send(c.sender, spec);
  EXPECT_EQ(status.code(), c.expected) << status;
  // Who was refused has used nothing up: the right peer still lands.
  if (!status.ok()) {
    spec.landing.set_identity(Identity(c.server));
    const absl::Status second = Send(c.landing_for, spec);
    EXPECT_TRUE(second.ok()) << second;
  }
  std::future<landing::Landed> arrived = landed.get_future();
  ASSERT_EQ(arrived.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const landing::Landed there = arrived.get();
  EXPECT_EQ(PoolFiller(pools_[1].get(), &there.kv).Differing(0, wanted_[0], kSeed), 0);
  server->reset();
}

INSTANTIATE_TEST_SUITE_P(Peers, HandoffTlsTest,
                         testing::Values(Case{"BothAsNamed", "prefill/a", "decode/1", "prefill/a", "decode/1",
                                              absl::StatusCode::kOk},
                                         Case{"AnotherPrefillWorkerWithTheTicket", "prefill/b", "decode/1",
                                              "prefill/a", "decode/1", absl::StatusCode::kPermissionDenied},
                                         Case{"APrefillWorkerWithoutAName", "prefill", "decode/1",
                                              "prefill/a", "decode/1", absl::StatusCode::kPermissionDenied},
                                         Case{"AnotherDecodeWorkerAtTheAddress", "prefill/a", "decode/2",
                                              "prefill/a", "decode/1", absl::StatusCode::kUnavailable},
                                         Case{"AClientWithTheTicket", "client", "decode/1", "prefill/a",
                                              "decode/1", absl::StatusCode::kPermissionDenied},
                                         Case{"ADecodeWorkerWithTheTicket", "decode/2", "decode/1",
                                              "prefill/a", "decode/1", absl::StatusCode::kPermissionDenied},
                                         Case{"ARouterWithTheTicket", "router", "decode/1", "prefill/a",
                                              "decode/1", absl::StatusCode::kPermissionDenied}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace baton
