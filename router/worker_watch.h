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
#include "router/probe_schedule.h"
#include "router/router_loop.h"
#include "router/worker_stubs.h"

namespace baton {

// Keeps the registry's view of the workers fresh: resolves their names, asks each what it is and how loaded
// it is, watches its health, and reports what it hears, or that it hears nothing. Decides nothing but when to
// ask. Names that cannot be resolved keep the addresses they had. Resolving blocks, so it has a thread of its
// own; the rest is calls of gRPC. Owned by the server; stopped by its destructor, which waits for the calls
// in flight.
class WorkerWatch {
 public:
  struct Options {
    std::vector<std::string> prefill;
    std::vector<std::string> decode;
    absl::Duration probe_interval = absl::Milliseconds(500);
    absl::Duration probe_timeout = absl::Seconds(1);
    absl::Duration longest_probe_pause = absl::Seconds(2);  // of a worker that does not answer
    absl::Duration resolve_interval = absl::Seconds(5);
  };
  // All outlive the watch.
  WorkerWatch(Options options, const Clock* clock, WorkerStubs* stubs, RouterLoop* loop);
  ~WorkerWatch();

 private:
  class InFlight;
  class Probe;
  class HealthStream;

  // On the resolver's thread.
  void ResolveAll();
  std::set<std::string> Resolve(const std::vector<std::string>& entries);
  // On the executor.
  void OnResolved(v1::Role role, const std::set<std::string>& found);
  void OnProbed(const std::string& worker, bool answered);
  void OnHealth(const std::string& worker, bool serving);
  void OnHealthClosed(const std::string& worker, const HealthStream* stream);
  void ProbeDue();

  const Options options_;
  const Clock* const clock_;
  WorkerStubs* const stubs_;
  RouterLoop* const loop_;
  // Counts calls, so that the end can wait for them.
  const std::shared_ptr<InFlight> in_flight_;
  // Of the resolver.
  std::map<std::string, std::set<std::string>> resolved_;  // by entry, as last found
  std::set<std::string> unresolved_;
  // Of the executor.
  std::map<std::string, v1::Role> workers_;
  ProbeSchedule schedule_;
  std::map<std::string, std::shared_ptr<HealthStream>> health_;  // those that are open
  std::map<std::string, absl::Time> reopen_at_;                  // of those that closed
  Executor::TimerId timer_ = 0;
  SerialExecutor executor_;
  SerialExecutor resolver_;
};

}  // namespace baton

#endif  // BATON_ROUTER_WORKER_WATCH_H_
