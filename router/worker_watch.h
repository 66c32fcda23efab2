#ifndef BATON_ROUTER_WORKER_WATCH_H_
#define BATON_ROUTER_WORKER_WATCH_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/control.pb.h"
#include "common/executor.h"
#include "common/serial_executor.h"
#include "router/router_loop.h"
#include "router/worker_stubs.h"

namespace baton {

// Keeps the registry's view of the workers fresh: resolves their names, asks each what it is and how loaded
// it is, and reports what it hears, or that it hears nothing. Decides nothing. Resolving blocks, so it has a
// thread of its own; probes are calls of gRPC with a deadline. Owned by the server; stopped by its
// destructor, which waits for the probes in flight.
class WorkerWatch {
 public:
  struct Options {
    std::vector<std::string> prefill;
    std::vector<std::string> decode;
    absl::Duration probe_interval = absl::Milliseconds(500);
    absl::Duration probe_timeout = absl::Seconds(1);
    absl::Duration resolve_interval = absl::Seconds(5);
  };
  // All outlive the watch.
  WorkerWatch(Options options, const Clock* clock, WorkerStubs* stubs, RouterLoop* loop);
  ~WorkerWatch();

 private:
  class Probe;
  void Resolve();
  void ResolveRole(v1::Role role, const std::vector<std::string>& entries);
  void ProbeAll();

  const Options options_;
  const Clock* const clock_;
  WorkerStubs* const stubs_;
  RouterLoop* const loop_;
  // Of the executor.
  std::map<v1::Role, std::set<std::string>> known_;
  std::set<std::string> unresolved_;
  absl::Time resolve_at_;
  // Counts probes, so that the end can wait for them.
  class InFlight;
  const std::shared_ptr<InFlight> in_flight_;
  SerialExecutor executor_;
};

}  // namespace baton

#endif  // BATON_ROUTER_WORKER_WATCH_H_
