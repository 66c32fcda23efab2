#ifndef BATON_TESTS_END_TO_END_CLUSTER_H_
#define BATON_TESTS_END_TO_END_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/metrics.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "kv_transfer/backends/inproc/inproc_backend.h"
#include "router/router_server.h"
#include "router/served_model.h"
#include "tests/end_to_end/worker_node.h"

namespace baton {

struct ClusterOptions {
  const ServedModel* model = nullptr;  // the router's
  std::vector<Engine*> prefill;        // one worker on each
  std::vector<Engine*> decode;
  std::string transport = "grpc";  // or "inproc"
  PrefillSchedulerOptions prefill_options;
  DecodeSchedulerOptions decode_options;
  DrainOptions worker_drain = {.timeout = absl::Seconds(60)};
  RouterOptions router;
  InferenceService::Options inference;
  bool start_workers = true;             // false: the test starts them
  std::function<void()> at_end = [] {};  // called before it stops, to let go of what would hold that up
};

// A router, prefill and decode services in this process, over real gRPC on loopback. Engines and model
// outlive it. Used by one thread.
class Cluster {
 public:
  // Ready: every worker that was started serves.
  explicit Cluster(const ClusterOptions& options);
  // Expects that nothing is left, then stops everything.
  ~Cluster();

  v1::Inference::Stub& inference() { return *inference_; }
  v1::Control::Stub& control() { return *control_; }
  const std::string& address() const { return address_; }
  Metrics& metrics() { return metrics_; }
  WorkerNode& prefill(size_t i = 0) { return *prefill_.at(i); }
  WorkerNode& decode(size_t i = 0) { return *decode_.at(i); }

  // What the router says of a worker.
  v1::Worker Seen(const WorkerNode& node);
  // Until it says so of a worker, which a probe may have to find out first. Expects that it does within ten
  // seconds.
  void AwaitSeen(const WorkerNode& node, const std::function<bool(const v1::Worker&)>& done);
  // Until the present instance of a running worker, or one that is stopped, is in this state.
  void AwaitState(const WorkerNode& node, v1::WorkerState state);
  // Requests of the router, running or waiting.
  uint32_t Requests();
  // Until there are so many. Expects that within ten seconds there are.
  void AwaitRequests(uint32_t count);

  // As SIGTERM does.
  void DrainRouter() { drain_.RequestDrain(); }
  // Until the drained router's server has ended.
  void AwaitRouterEnd() { serving_.join(); }

  // Expects that, within one second, no call is left and every KV block is free.
  void ExpectIdle();

 private:
  absl::Status CheckIdle() const;

  const std::function<void()> at_end_;
  SteadyClock clock_;
  SystemRandomSource random_;
  InprocRendezvous rendezvous_;
  Metrics metrics_{"router", "model"};
  DrainState drain_;
  std::vector<std::unique_ptr<WorkerNode>> prefill_;
  std::vector<std::unique_ptr<WorkerNode>> decode_;
  std::unique_ptr<RouterServer> router_;
  std::string address_;
  std::thread serving_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Control::Stub> control_;
};

}  // namespace baton

#endif  // BATON_TESTS_END_TO_END_CLUSTER_H_
