#ifndef BATON_TESTS_END_TO_END_CLUSTER_H_
#define BATON_TESTS_END_TO_END_CLUSTER_H_

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
  std::string transport = "grpc";      // or "inproc"
  PrefillSchedulerOptions prefill_options;
  DecodeSchedulerOptions decode_options;
  RouterOptions router;
  InferenceService::Options inference;
  bool start_workers = true;           // false: the test starts them
};

// A router, prefill and decode services in this process, over real gRPC on loopback. Engines and model outlive it. Used by
// one thread.
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
  // Until it says this of the present instance of a running worker. Expects that it does within ten seconds.
  void AwaitState(const WorkerNode& node, v1::WorkerState state);
  uint32_t RunningRequests();

  // As SIGTERM does.
  void DrainRouter() { drain_.RequestDrain(); }
  // Until the drained router's server has ended.
  void AwaitRouterEnd() { serving_.join(); }

  // Expects that, within one second, no call is left and every KV block is free.
  void ExpectIdle();

 private:
  absl::Status CheckIdle() const;

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
