#include "tests/end_to_end/cluster.h"

#include <utility>

#include "common/check.h"
#include "common/grpc_channel.h"
#include "common/str_cat.h"
#include "gtest/gtest.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"

namespace baton {
namespace {

constexpr absl::Duration kFreeWithin = absl::Seconds(1);
constexpr absl::Duration kSeenWithin = absl::Seconds(10);
constexpr absl::Duration kProbeInterval = absl::Milliseconds(50);

}  // namespace

Cluster::Cluster(const ClusterOptions& options) : at_end_(options.at_end) {
  const KvBackendKind transport = options.transport == "grpc" ? GrpcBackend() : InprocBackend(&rendezvous_);
  WorkerWatch::Options watch = {.probe_interval = kProbeInterval};
  const auto add = [&](v1::Role role, const std::vector<Engine*>& engines,
                       std::vector<std::unique_ptr<WorkerNode>>& nodes, std::vector<std::string>& addresses) {
    for (Engine* engine : engines) {
      nodes.push_back(std::make_unique<WorkerNode>(WorkerNode::Options{.role = role,
                                                                       .engine = engine,
                                                                       .transport = transport,
                                                                       .prefill = options.prefill_options,
                                                                       .decode = options.decode_options,
                                                                       .drain = options.worker_drain}));
      addresses.push_back(nodes.back()->address());
      if (options.start_workers) nodes.back()->Start();
    }
  };
  add(v1::ROLE_PREFILL, options.prefill, prefill_, watch.prefill);
  add(v1::ROLE_DECODE, options.decode, decode_, watch.decode);

  auto router = RouterServer::Start(
      {}, options.router, options.inference, watch,
      {.model = options.model, .clock = &clock_, .random = &random_, .metrics = &metrics_, .drain = &drain_});
  BATON_CHECK(router.ok());
  router_ = *std::move(router);
  serving_ = std::thread([this] { router_->ServeUntilDrained({.timeout = absl::Seconds(60)}); });
  address_ = router_->address().ToString();
  inference_ = v1::Inference::NewStub(CreateChannel(address_));
  control_ = v1::Control::NewStub(CreateChannel(address_));
  if (!options.start_workers) return;
  for (const auto* nodes : {&prefill_, &decode_}) {
    for (const auto& node : *nodes) AwaitState(*node, v1::WORKER_STATE_SERVING);
  }
}

Cluster::~Cluster() {
  at_end_();
  ExpectIdle();
  drain_.Hurry();
  if (serving_.joinable()) serving_.join();
  router_.reset();
}

v1::Worker Cluster::Seen(const WorkerNode& node) {
  grpc::ClientContext context;
  v1::ListWorkersResponse response;
  const grpc::Status status = control_->ListWorkers(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const v1::Worker& worker : response.workers()) {
    if (worker.name() == node.address()) return worker;
  }
  return {};
}

void Cluster::AwaitSeen(const WorkerNode& node, const std::function<bool(const v1::Worker&)>& done) {
  const absl::Time end = absl::Now() + kSeenWithin;
  v1::Worker seen;
  do {
    seen = Seen(node);
    if (done(seen)) return;
  } while (absl::Now() < end);
  ADD_FAILURE() << node.address() << " is still: " << seen.ShortDebugString();
}

void Cluster::AwaitState(const WorkerNode& node, v1::WorkerState state) {
  AwaitSeen(node, [&](const v1::Worker& seen) {
    return seen.state() == state && (!node.running() || seen.instance_id() == node.instance_id());
  });
}

uint32_t Cluster::Requests() {
  grpc::ClientContext context;
  v1::GetLoadResponse load;
  EXPECT_TRUE(control_->GetLoad(&context, {}, &load).ok());
  return load.requests_running() + load.requests_waiting();
}

void Cluster::AwaitRequests(uint32_t count) {
  const absl::Time end = absl::Now() + kSeenWithin;
  uint32_t seen = 0;
  do {
    seen = Requests();
    if (seen == count) return;
  } while (absl::Now() < end);
  ADD_FAILURE() << "the router has " << seen << " requests, not " << count;
}

absl::Status Cluster::CheckIdle() const {
  const size_t left = drain_.snapshot().running;
  if (left > 0) return absl::InternalError(StrCat("the router has ", left, " calls"));
  for (const auto* nodes : {&prefill_, &decode_}) {
    for (const auto& node : *nodes) {
      if (absl::Status status = node->CheckIdle(); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

void Cluster::ExpectIdle() {
  const absl::Time end = absl::Now() + kFreeWithin;
  absl::Status idle;
  do {
    idle = CheckIdle();
    if (idle.ok()) return;
    std::this_thread::yield();
  } while (absl::Now() < end);
  ADD_FAILURE() << "after " << kFreeWithin << ": " << idle;
}

}  // namespace baton
