#ifndef BATON_ENGINE_WORKER_PROCESS_H_
#define BATON_ENGINE_WORKER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/credentials.h"
#include "common/drain_state.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/metrics_http.h"
#include "common/signals.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "engine/device/device.h"
#include "engine/engine.h"
#include "engine/server_parts.h"
#include "engine/worker_options.h"

namespace baton {

// What a worker's process has whatever its role: log, clock, signals that drain it, a loaded engine, metrics.
// Made by main, outlives the server of the role.
class WorkerProcess {
 public:
  // `role`: "prefill" or "decode", in logs and metrics. Reports the load in the log. From here on SIGTERM and
  // SIGINT drain; a second one hurries.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const std::string& role,
                                                              const WorkerOptions& options,
                                                              const EngineOptions& engine);
  ~WorkerProcess();

  ServerParts parts();
  // `options.server` with what this process shows and believes.
  GrpcServerOptions ServerOptions(const WorkerOptions& options) const;

  // The one line that says where the role is served.
  void LogReady(const std::string& address, const std::string& instance_id) const;

 private:
  WorkerProcess(std::string role, absl::Duration stall_timeout, std::unique_ptr<ProcessLog> log);

  const std::string role_;
  const absl::Duration stall_timeout_;
  const std::unique_ptr<ProcessLog> log_;
  SteadyClock clock_;
  SystemRandomSource random_;
  DrainState drain_;
  SignalWatcher signals_;
  std::shared_ptr<const Credentials> credentials_;
  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<MetricsHttp> metrics_http_;  // null: not served
};

}  // namespace baton

#endif  // BATON_ENGINE_WORKER_PROCESS_H_
