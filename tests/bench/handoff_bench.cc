// How long a finished prompt's KV cache takes from one worker's pools to another's, against the least that
// moving as many bytes costs.
//
//   handoff_bench ROUNDS TOKENS...
//
// Both facades of kv_transfer in one process over a real gRPC connection on loopback, with the KV shape of
// SmolLM2-135M (30 layers, 3 KV heads of 64, float16). A round times, for each number of tokens: a handoff
// whose layers are all computed (offered -> commit received), memcpy of as many bytes, and a loopback TCP
// socket that carries as many to a thread that reads them. Prints a line of JSON for each.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/grpc_channel.h"
#include "common/mutex.h"
#include "common/seeded_random_source.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"
#include "engine/device/device.h"
#include "engine/kv/kv_pools.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/handoff_receiver.h"
#include "kv_transfer/handoff_sender.h"
#include "kv_transfer/landing.h"
#include "kv_transfer/pool_filler.h"
#include "kv_transfer/transfer_plan.h"
#include "tests/bench/byte_stream.h"

namespace baton {
namespace {

constexpr uint32_t kLayers = 30;
constexpr uint32_t kBlockTokens = 16;
constexpr uint32_t kLongest = 8192;
constexpr uint64_t kPoolBytes = uint64_t{256} << 20;

KvGeometry Geometry() {
  std::vector<uint32_t> layers(kLayers);
  for (uint32_t i = 0; i < kLayers; ++i) layers[i] = i;
  return {KvType::kF16, kBlockTokens, {{.layers = std::move(layers), .kv_heads = 3, .head_dim = 64}}};
}

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

// A prefill and a decode worker's transfer sides.
class Pair {
 public:
  Pair() {
    const std::vector<KvBackendKind> transports = {GrpcBackend()};
    HandoffReceiver::Options receiver;
    receiver.transports = transports;
    receiver.pools = decode_pools_.get();
    receiver.device = device_.get();
    receiver.clock = &clock_;
    receiver.on_landed = [](landing::Landed) {};
    receiver.on_failed = [](landing::LandingFailed) {};
    receiver_ = std::make_unique<HandoffReceiver>(std::move(receiver));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(receiver_->service());
    server_ = builder.BuildAndStart();
    BATON_CHECK(server_ != nullptr);
    address_ = StrCat("127.0.0.1:", port);
    HandoffSender::Options sender;
    sender.instance_id = "prefill";
    sender.transports = transports;
    sender.pools = prefill_pools_.get();
    sender.device = device_.get();
    sender.clock = &clock_;
    sender.channels = [](const std::string& address, const std::string&) { return CreateChannel(address); };
    sender.on_finished = [this](HandoffResult result) {
      MutexLock lock(&mutex_);
      result_ = std::move(result);
      arrived_.SignalAll();
    };
    sender_ = std::make_unique<HandoffSender>(std::move(sender));
  }
  ~Pair() {
    sender_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
    receiver_.reset();
  }

  // One handoff; its duration in ms, and its bytes.
  std::pair<double, uint64_t> Handoff(uint32_t tokens) {
    const std::vector<TokenRange> wanted = WantedAfter(Geometry(), tokens);
    LandingSpec landing;
    landing.transfer_id = TransferId::Mint(random_);
    landing.ticket = MintTicket(random_);
    landing.prefill_instance_id = "prefill";
    landing.kv = *decode_pools_->Reserve(tokens + 1);
    landing.kv.BeginLanding();
    landing.wanted = wanted;
    landing.expires = clock_.Now() + absl::Seconds(30);
    HandoffSpec spec;
    spec.transfer_id = landing.transfer_id;
    spec.landing =
        MakeLanding(landing.ticket, "decode", address_, receiver_->transports(), Geometry(), wanted);
    spec.prompt_tokens = tokens;
    spec.deadline = landing.expires;
    receiver_->Add(std::move(landing));
    SequenceKv kv = *prefill_pools_->Reserve(tokens);
    kv.Activate();
    PoolFiller(prefill_pools_.get(), &kv).Fill(0, wanted[0], 7);
    sender_->Start(spec, PinnedKv::Of(kv));
    const auto start = std::chrono::steady_clock::now();
    sender_->Computed(spec.transfer_id, {0, kLayers}, {0, tokens});
    v1::LandCommit commit;
    commit.mutable_first_token()->set_id(1);
    sender_->PromptDone(spec.transfer_id, commit);
    const HandoffResult result = Await();
    const double took = Milliseconds(start);
    BATON_CHECK(result.status.ok());
    return {took, result.bytes};
  }

 private:
  HandoffResult Await() {
    MutexLock lock(&mutex_);
    while (!result_) arrived_.Wait(&mutex_);
    return *std::exchange(result_, std::nullopt);
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  const SteadyClock clock_;
  SeededRandomSource random_{8};
  const std::unique_ptr<KvPools> prefill_pools_ =
      *KvPools::Create(device_.get(), Geometry(), kPoolBytes, kLongest, 512);
  const std::unique_ptr<KvPools> decode_pools_ =
      *KvPools::Create(device_.get(), Geometry(), kPoolBytes, kLongest, 512);
  Mutex mutex_;
  CondVar arrived_;
  std::optional<HandoffResult> result_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HandoffReceiver> receiver_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HandoffSender> sender_;
  std::string address_;
};

double MemcpyTime(uint64_t bytes) {
  static std::vector<char> from(kPoolBytes, 1), to(kPoolBytes, 2);
  const auto start = std::chrono::steady_clock::now();
  std::memcpy(to.data(), from.data(), bytes);
  return Milliseconds(start);
}

int Run(int rounds, const std::vector<uint32_t>& sizes) {
  Pair pair;
  ByteStream socket;
  // The first round warms connections, pools and buffers up, and is not printed.
  for (int round = 0; round <= rounds; ++round) {
    for (const uint32_t tokens : sizes) {
      const auto [handoff_ms, bytes] = pair.Handoff(tokens);
      const double memcpy_ms = MemcpyTime(bytes);
      const auto start = std::chrono::steady_clock::now();
      socket.Carry(bytes);
      const double socket_ms = Milliseconds(start);
      if (round == 0) continue;
      std::printf(
          "{\"tokens\":%u,\"bytes\":%llu,\"handoff_ms\":%.4f,\"memcpy_ms\":%.4f,\"socket_ms\":%.4f}\n",
          tokens, static_cast<unsigned long long>(bytes), handoff_ms, memcpy_ms, socket_ms);
    }
  }
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  std::vector<uint32_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(static_cast<uint32_t>(std::atoi(argv[i])));
  const auto in_range = [](uint32_t tokens) { return tokens >= 1 && tokens < baton::kLongest; };
  if (argc < 3 || !std::all_of(sizes.begin(), sizes.end(), in_range)) {
    std::fprintf(stderr, "usage: handoff_bench ROUNDS TOKENS...\n");
    return 2;
  }
  return baton::Run(std::atoi(argv[1]), sizes);
}
