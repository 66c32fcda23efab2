#ifndef BATON_TESTS_END_TO_END_WORKER_NODE_H_
#define BATON_TESTS_END_TO_END_WORKER_NODE_H_

#include <memory>
#include <string>

#include "baton/v1/control.pb.h"
#include "common/drain_sequence.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "decode_service/decode_scheduler.h"
#include "engine/device/device.h"
#include "engine/engine.h"
#include "kv_transfer/kv_backend_registry.h"
#include "prefill_service/prefill_scheduler.h"
#include "tests/support/leg_client.h"

namespace baton {

// A worker of a cluster: a whole service over an engine, on a port of its own. It may be stopped and started
// again, at the same address. Used by one thread.
class WorkerNode {
 public:
  struct Options {
    v1::Role role = v1::ROLE_UNSPECIFIED;
    Engine* engine = nullptr;  // outlives the node
    KvBackendKind transport;
    PrefillSchedulerOptions prefill;
    DecodeSchedulerOptions decode;
    DrainOptions drain = {.timeout = absl::Seconds(60)};
  };
  // Takes a port, and does not yet listen on it.
  explicit WorkerNode(Options options);
  ~WorkerNode();

  // Returns when it has warmed up and takes requests.
  void Start();
  // Ends whatever runs and waits for its end.
  void Stop();
  // As SIGTERM does: running work goes on, new work is refused, then the service ends by itself.
  void RequestDrain();
  bool running() const { return process_ != nullptr; }

  v1::Role role() const { return options_.role; }
  const std::string& address() const { return address_; }
  const std::string& instance_id() const;  // of a running worker
  WorkerClient& client() { return client_; }
  Engine& engine() const { return *options_.engine; }
  // No call holds anything: OK, or what is left.
  absl::Status CheckIdle() const;

 private:
  struct Process;

  const Options options_;
  const std::string address_;
  SteadyClock clock_;
  SystemRandomSource random_;
  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  WorkerClient client_;
  std::unique_ptr<Process> process_;  // null while stopped
};

}  // namespace baton

#endif  // BATON_TESTS_END_TO_END_WORKER_NODE_H_
