#include <memory>

#include "absl/status/status.h"
#include "common/credentials.h"
#include "common/drain_state.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/metrics_http.h"
#include "common/run_program.h"
#include "common/signals.h"
#include "common/status_macros.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "common/version.h"
#include "router/admission_queue.h"
#include "router/router_options.h"
#include "router/router_server.h"
#include "router/served_model.h"
#include "router/worker_list.h"

namespace baton {
namespace {

absl::Status Run(const RouterProgramOptions& options) {
  if (options.model.empty())
    return absl::InvalidArgumentError("--model is needed: the GGUF file that the workers serve");
  RETURN_IF_ERROR(CheckWorkerList(options.watch.prefill));
  RETURN_IF_ERROR(CheckWorkerList(options.watch.decode));
  if (options.watch.decode.empty())
    return absl::InvalidArgumentError("--decode is empty: at least one worker is needed");

  ASSIGN_OR_RETURN(const LogOptions log_options, ParseLogOptions(options.log_level, options.log_format));
  ASSIGN_OR_RETURN(const std::unique_ptr<ProcessLog> log, ProcessLog::Start(log_options));
  ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, ServedModel::Load(options.model));
  const SteadyClock clock;
  SystemRandomSource random;
  DrainState drain;
  const SignalWatcher signals([&drain](int nth) { nth == 1 ? drain.RequestDrain() : drain.Hurry(); });
  RouterOptions router_options = options.router;
  ASSIGN_OR_RETURN(router_options.admission.weights, ParseTenantWeights(options.tenant_weights));
  GrpcServerOptions server_options = options.server;
  ASSIGN_OR_RETURN(server_options.credentials, Credentials::Create(options.credentials, &clock));
  Metrics metrics("router", model->name());
  server_options.metrics = &metrics;
  metrics.Get<Metric::kBuildInfo>(kVersion).Set(1);
  std::unique_ptr<MetricsHttp> metrics_http;
  if (!options.metrics_listen.empty()) {
    ASSIGN_OR_RETURN(metrics_http, MetricsHttp::Start(options.metrics_listen, metrics));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RouterServer> server,
      RouterServer::Start(
          server_options, router_options, options.inference, options.watch,
          {.model = model.get(), .clock = &clock, .random = &random, .metrics = &metrics, .drain = &drain}));
  Log(LogLevel::kInfo, "ready",
      {{"role", "router"},
       {"address", server->address().ToString()},
       {"metrics", metrics_http == nullptr ? "off" : metrics_http->address().ToString()},
       {"model", model->name()},
       {"instance_id", server->instance_id()}});
  server->ServeUntilDrained(options.drain);
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::RouterProgramOptions options;
  return baton::RunProgram(baton::RouterProgram(), baton::DescribeRouter(&options), argc, argv,
                           [&options] { return baton::Run(options); });
}
