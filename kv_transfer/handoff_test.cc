// The two facades as services use them: real threads, a real gRPC connection, two pools.

#include <deque>
#include <memory>

#include "absl/strings/match.h"
#include "baton/v1/kv_transfer.grpc.pb.h"
#include "common/grpc_channel.h"
#include "common/metrics.h"
#include "common/mutex.h"
#include "common/protocol_version.h"
#include "common/seeded_random_source.h"
#include "common/steady_clock.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/backends/inproc/inproc_backend.h"
#include "kv_transfer/handoff_receiver.h"
#include "kv_transfer/handoff_sender.h"
#include "kv_transfer/landing.h"
#include "kv_transfer/pool_filler.h"

namespace baton {
namespace {

constexpr uint32_t kPrompt = 700;
constexpr uint32_t kLayers = 6;
constexpr uint32_t kSeed = 4;
// For every handoff of a test at once: what ends is given back a little later.
constexpr uint64_t kPoolBytes = 64 << 20;

// 512 bytes per token and layer: the prompt's KV is 2.8 MB, several pieces and messages.
KvGeometry Geometry(uint32_t block_tokens) {
  return {KvType::kF16,
          block_tokens,
          {{.layers = {0, 1, 2, 4, 5}, .kv_heads = 4, .head_dim = 32},
           {.layers = {3}, .kv_heads = 4, .head_dim = 32, .window_tokens = 100}}};
}

// What a facade's callbacks report, awaited with a bound.
template <typename Event>
class Inbox {
 public:
  void Put(Event event) {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
    arrived_.SignalAll();
  }
  std::optional<Event> Take() {
    MutexLock lock(&mutex_);
    while (events_.empty()) {
      if (!arrived_.WaitFor(&mutex_, absl::Seconds(20))) return std::nullopt;
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  void Clear() {
    MutexLock lock(&mutex_);
    events_.clear();
  }
  bool empty() {
    MutexLock lock(&mutex_);
    return events_.empty();
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
};

struct Case {
  std::string transport;
  uint32_t prefill_block;
  uint32_t decode_block;
};

class HandoffTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    prefill_pools_ =
        *KvPools::Create(device_.get(), Geometry(GetParam().prefill_block), kPoolBytes, 800, 256);
    decode_pools_ = *KvPools::Create(device_.get(), Geometry(GetParam().decode_block), kPoolBytes, 1024, 64);
    KvBackendRegistry registry;
    registry.Register(GrpcBackend());
    registry.Register(InprocBackend(&rendezvous_));
    const std::vector<KvBackendKind> transports = *registry.Select({GetParam().transport});

    HandoffReceiver::Options receiver;
    receiver.transports = transports;
    receiver.pools = decode_pools_.get();
    receiver.device = device_.get();
    receiver.clock = &clock_;
    receiver.metrics = &metrics_;
    receiver.on_landed = [this](landing::Landed landed) { landed_.Put(std::move(landed)); };
    receiver.on_failed = [this](landing::LandingFailed failed) { failed_.Put(std::move(failed)); };
    receiver_ = std::make_unique<HandoffReceiver>(std::move(receiver));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(receiver_->service());
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);

    HandoffSender::Options sender;
    sender.instance_id = "prefill";
    sender.transports = transports;
    sender.pools = prefill_pools_.get();
    sender.device = device_.get();
    sender.clock = &clock_;
    sender.metrics = &metrics_;
    sender.channels = [](const std::string& address, const std::string&) { return CreateChannel(address); };
    sender.on_finished = [this](HandoffResult result) { finished_.Put(std::move(result)); };
    sender_ = std::make_unique<HandoffSender>(std::move(sender));
  }

  // Ends both sides; whatever happened, no block is lost.
  void TearDown() override {
    kv_ = SequenceKv();
    sender_.reset();
    EndDecode();
    landed_.Clear();  // what landed before it was cancelled
    EXPECT_TRUE(prefill_pools_->CheckAllFree().ok()) << prefill_pools_->CheckAllFree();
    EXPECT_TRUE(decode_pools_->CheckAllFree().ok()) << decode_pools_->CheckAllFree();
  }
  void EndDecode() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    receiver_.reset();
    server_.reset();
  }

  // A landing, and a prompt whose KV is known.
  void Prepare() {
    LandingSpec landing;
    landing.transfer_id = spec_.transfer_id = TransferId::Mint(random_);
    landing.ticket = MintTicket(random_);
    landing.prefill_instance_id = "prefill";
    landing.kv = *decode_pools_->Reserve(kPrompt + 50);
    landing.kv.BeginLanding();
    landing.wanted = wanted_;
    landing.expires = clock_.Now() + absl::Seconds(30);
    spec_.landing = MakeLanding(landing.ticket, "decode", address_, receiver_->transports(),
                                decode_pools_->geometry(), wanted_);
    spec_.prompt_tokens = kPrompt;
    spec_.deadline = clock_.Now() + absl::Seconds(30);
    receiver_->Add(std::move(landing));
    kv_ = *prefill_pools_->Reserve(kPrompt);
    PoolFiller filler(prefill_pools_.get(), &kv_);
    for (uint32_t group = 0; group < wanted_.size(); ++group) filler.Fill(group, wanted_[group], kSeed);
  }

  // The steps of a handoff, in order.
  static constexpr int kSteps = 8;
  void Step(int step) {
    if (step == 0) return sender_->Start(spec_, PinnedKv::Of(kv_));
    if (step == kSteps - 1) {
      v1::LandCommit commit;
      commit.mutable_first_token()->set_id(11);
      commit.mutable_first_token()->set_logprob(-0.5f);
      commit.set_prefill_compute_ms(7);
      return sender_->PromptDone(spec_.transfer_id, commit);
    }
    const uint32_t chunk = (step - 1) / 2;  // of three
    const uint32_t half = (step - 1) % 2 * 3;
    sender_->Computed(spec_.transfer_id, {half, half + 3},
                      {chunk * 256, std::min(kPrompt, (chunk + 1) * 256)});
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  const SteadyClock clock_;
  Metrics metrics_{"test", "model"};
  SeededRandomSource random_{8};
  InprocRendezvous rendezvous_;
  std::unique_ptr<KvPools> prefill_pools_;
  std::unique_ptr<KvPools> decode_pools_;
  const std::vector<TokenRange> wanted_ = WantedAfter(Geometry(16), kPrompt);
  Inbox<HandoffResult> finished_;
  Inbox<landing::Landed> landed_;
  Inbox<landing::LandingFailed> failed_;
  std::unique_ptr<HandoffReceiver> receiver_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HandoffSender> sender_;
  std::string address_;
  HandoffSpec spec_;
  SequenceKv kv_;
};

TEST_P(HandoffTest, LandsTheSameBytesAndTheFirstToken) {
  for (int round = 0; round < 2; ++round) {
    Prepare();
    for (int step = 0; step < kSteps; ++step) Step(step);
    kv_ = SequenceKv();  // the transfer has its own pins
    const auto landed = landed_.Take();
    ASSERT_TRUE(landed.has_value());
    const auto finished = finished_.Take();
    ASSERT_TRUE(finished.has_value());
    ASSERT_TRUE(finished->status.ok()) << finished->status;
    EXPECT_EQ(finished->transfer_id, spec_.transfer_id);
    EXPECT_EQ(finished->transport, GetParam().transport);
    EXPECT_EQ(finished->bytes, WantedBytes(Geometry(16), wanted_));
    EXPECT_GT(finished->handoff, absl::ZeroDuration());
    EXPECT_EQ(landed->bytes, finished->bytes);
    EXPECT_EQ(landed->transport, GetParam().transport);
    EXPECT_EQ(landed->commit.first_token().id(), 11);
    EXPECT_EQ(landed->commit.first_token().logprob(), -0.5f);
    EXPECT_EQ(landed->commit.prefill_compute_ms(), 7);
    const PoolFiller there(decode_pools_.get(), &landed->kv);
    for (uint32_t group = 0; group < wanted_.size(); ++group) {
      EXPECT_EQ(there.Differing(group, wanted_[group], kSeed), 0);
    }
  }
  EXPECT_EQ(metrics_.Get<Metric::kKvTransferBytes>(GetParam().transport).Value(),
            2 * WantedBytes(Geometry(16), wanted_));
}

TEST_P(HandoffTest, ACancelAtAnyPhaseEndsBothSides) {
  for (int at = 0; at <= kSteps; ++at) {
    Prepare();
    for (int step = 0; step < at; ++step) Step(step);
    sender_->Cancel(spec_.transfer_id);
    kv_ = SequenceKv();
    if (at > 0) {
      const auto finished = finished_.Take();
      ASSERT_TRUE(finished.has_value()) << "cancelled after step " << at;
      // A cancel after the last step may come too late.
      EXPECT_TRUE(finished->status.code() == absl::StatusCode::kCancelled || at == kSteps)
          << finished->status;
    }
    receiver_->Drop(spec_.transfer_id);
  }
  EXPECT_TRUE(finished_.empty());
}

TEST_P(HandoffTest, ADropAtAnyPhaseEndsBothSides) {
  for (int at = 0; at <= kSteps; ++at) {
    Prepare();
    for (int step = 0; step < at; ++step) Step(step);
    receiver_->Drop(spec_.transfer_id);
    for (int step = at; step < kSteps; ++step) Step(step);
    kv_ = SequenceKv();
    const auto finished = finished_.Take();
    ASSERT_TRUE(finished.has_value()) << "dropped after step " << at;
    const absl::StatusCode code = finished->status.code();
    // Before the open has come it is an ended transfer, afterwards one that was cut off. A move in this
    // process may find its destination withdrawn before the end of the stream is heard of.
    const bool withdrawn = GetParam().transport == "inproc" && code == absl::StatusCode::kUnavailable &&
                           absl::StrContains(finished->status.message(), "is not awaited");
    EXPECT_TRUE(code == absl::StatusCode::kCancelled || code == absl::StatusCode::kNotFound || withdrawn ||
                at == kSteps)
        << finished->status;
  }
  EXPECT_TRUE(failed_.empty());
}

TEST_P(HandoffTest, AWrongTicketIsRefusedAndTheLandingStays) {
  Prepare();
  spec_.landing.mutable_ticket()->back() ^= 1;
  Step(0);
  const auto refused = finished_.Take();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status.code(), absl::StatusCode::kPermissionDenied) << refused->status;
  EXPECT_EQ(metrics_.Get<Metric::kKvTransferFailures>("PERMISSION_DENIED").Value(), 1);
  EXPECT_TRUE(failed_.empty());
  receiver_->Drop(spec_.transfer_id);
}

TEST_P(HandoffTest, AnotherLayoutFailsBothSides) {
  KvGeometry other = Geometry(16);
  other.groups[0].head_dim = 16;
  const auto pools = *KvPools::Create(device_.get(), other, kPoolBytes, 800, 256);
  Prepare();
  HandoffSender::Options options;
  options.instance_id = "prefill";
  options.transports = {GrpcBackend(), InprocBackend(&rendezvous_)};
  options.pools = pools.get();
  options.device = device_.get();
  options.clock = &clock_;
  options.channels = [](const std::string& address, const std::string&) { return CreateChannel(address); };
  options.on_finished = [this](HandoffResult result) { finished_.Put(std::move(result)); };
  HandoffSender sender(std::move(options));
  sender.Start(spec_, PinnedKv::Of(*pools->Reserve(kPrompt)));
  const auto finished = finished_.Take();
  const auto failed = failed_.Take();
  ASSERT_TRUE(finished.has_value() && failed.has_value());
  EXPECT_EQ(finished->status.code(), absl::StatusCode::kFailedPrecondition) << finished->status;
  EXPECT_EQ(failed->status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(failed->sender_instance_id, "prefill");
}

TEST_P(HandoffTest, NobodyAtTheAddressIsUnavailable) {
  Prepare();
  spec_.landing.set_address("127.0.0.1:1");
  Step(0);
  const auto finished = finished_.Take();
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->status.code(), absl::StatusCode::kUnavailable) << finished->status;
}

TEST_P(HandoffTest, ADecodeWorkerThatGoesAwayEndsTheHandoff) {
  Prepare();
  for (int step = 0; step < 4; ++step) Step(step);
  EndDecode();
  const auto finished = finished_.Take();
  ASSERT_TRUE(finished.has_value());
  // gRPC's server cancels its streams as it goes, and the connection's end may be seen first.
  EXPECT_TRUE(finished->status.code() == absl::StatusCode::kUnavailable ||
              finished->status.code() == absl::StatusCode::kCancelled)
      << finished->status;
}

TEST_P(HandoffTest, APrefillWorkerThatGoesAwayFailsTheLanding) {
  Prepare();
  const auto stub = v1::KvTransfer::NewStub(CreateChannel(address_));
  grpc::ClientContext context;
  const auto stream = stub->Land(&context);
  v1::LandRequest request;
  v1::LandOpen* open = request.mutable_open();
  open->set_protocol_version(kProtocolVersion);
  open->set_transfer_id(spec_.transfer_id.ToBytes());
  open->set_ticket(spec_.landing.ticket());
  open->set_sender_instance_id("prefill");
  open->set_layout_id(Geometry(16).LayoutId());
  open->set_block_tokens(16);
  open->set_transport(GetParam().transport);
  ASSERT_TRUE(stream->Write(request));
  v1::LandReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_TRUE(reply.has_opened());
  context.TryCancel();
  const auto failed = failed_.Take();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->status.code(), absl::StatusCode::kUnavailable) << failed->status;
  EXPECT_EQ(failed->sender_instance_id, "prefill");
  EXPECT_FALSE(stream->Finish().ok());
}

INSTANTIATE_TEST_SUITE_P(Transports, HandoffTest,
                         testing::Values(Case{"grpc", 16, 16}, Case{"grpc", 32, 8}, Case{"inproc", 16, 16},
                                         Case{"inproc", 8, 32}),
                         [](const auto& info) {
                           return info.param.transport + std::to_string(info.param.prefill_block) + "to" +
                                  std::to_string(info.param.decode_block);
                         });

}  // namespace
}  // namespace baton
