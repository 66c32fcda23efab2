#include "engine/worker_process.h"

#include <utility>

#include "common/status_macros.h"
#include "common/version.h"

namespace baton {

WorkerProcess::WorkerProcess(std::string role, absl::Duration stall_timeout, std::unique_ptr<ProcessLog> log)
    : role_(std::move(role)), stall_timeout_(stall_timeout), log_(std::move(log)), signals_([this](int nth) {
        Log(LogLevel::kInfo, "signal", {{"role", role_}, {"nth", nth}});
        nth == 1 ? drain_.RequestDrain() : drain_.Hurry();
      }) {}

WorkerProcess::~WorkerProcess() { Log(LogLevel::kInfo, "stopped", {{"role", role_}}); }

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const std::string& role,
                                                                    const WorkerOptions& options,
                                                                    const EngineOptions& engine) {
  ASSIGN_OR_RETURN(const LogOptions log_options, ParseLogOptions(options.log_level, options.log_format));
  ASSIGN_OR_RETURN(std::unique_ptr<ProcessLog> log, ProcessLog::Start(log_options));
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(role, options.stall_timeout, std::move(log)));
  ASSIGN_OR_RETURN(process->credentials_, Credentials::Create(options.credentials, &process->clock_));
  ASSIGN_OR_RETURN(process->engine_, LoadEngine(engine));
  const EngineInfo& info = process->engine_->info();
  const KvPools& pools = process->engine_->kv();
  Log(LogLevel::kInfo, "model_loaded",
      {{"role", role},
       {"model", info.model_name},
       {"fingerprint", info.fingerprint},
       {"seconds", info.load_seconds},
       {"weight_bytes", info.weight_bytes},
       {"kernels", info.kernels},
       {"recipe", info.decode_recipe},
       {"threads", engine.threads},
       {"context_tokens", info.context_tokens},
       {"kv_bytes", engine.kv_bytes},
       {"kv_type", KvTypeName(engine.kv_type)},
       {"kv_capacity_tokens", pools.capacity_tokens()}});
  process->metrics_ = std::make_unique<Metrics>(role, info.model_name);
  process->metrics_->Get<Metric::kModelLoad>().Set(info.load_seconds);
  if (!options.metrics_listen.empty()) {
    ASSIGN_OR_RETURN(process->metrics_http_, MetricsHttp::Start(options.metrics_listen, *process->metrics_));
    Log(LogLevel::kInfo, "metrics_ready",
        {{"role", role}, {"address", process->metrics_http_->address().ToString()}});
  }
  return process;
}

ServerParts WorkerProcess::parts() {
  return {.engine = engine_.get(),
          .device = device_.get(),
          .clock = &clock_,
          .random = &random_,
          .metrics = metrics_.get(),
          .drain = &drain_,
          .stall_timeout = stall_timeout_};
}

GrpcServerOptions WorkerProcess::ServerOptions(const WorkerOptions& options) const {
  GrpcServerOptions server = options.server;
  server.port = role_ == "prefill" ? PortRole::kPrefill : PortRole::kDecode;
  server.credentials = credentials_;
  server.metrics = metrics_.get();
  return server;
}

void WorkerProcess::LogReady(const std::string& address, const std::string& instance_id) const {
  Log(LogLevel::kInfo, "ready",
      {{"role", role_},
       {"address", address},
       {"model", engine_->info().model_name},
       {"instance_id", instance_id},
       {"version", kVersion}});
}

}  // namespace baton
