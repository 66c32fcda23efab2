#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/options.h"
#include "common/status_macros.h"
#include "engine/device/device.h"
#include "engine/worker_process.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/kv_backend_registry.h"
#include "prefill_service/prefill_options.h"
#include "prefill_service/prefill_server.h"

namespace baton {
namespace {

absl::Status Run(const PrefillOptions& options) {
  KvBackendRegistry registry;
  registry.Register(GrpcBackend());
  ASSIGN_OR_RETURN(std::vector<KvBackendKind> transports, registry.Select(options.worker.transports));
  const PrefillSchedulerOptions& scheduler = options.scheduler;
  ASSIGN_OR_RETURN(const EngineOptions engine,
                   MakeEngineOptions(options.worker, std::min(scheduler.chunk_tokens, scheduler.token_budget),
                                     scheduler.token_budget));
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkerProcess> process,
                   WorkerProcess::Start("prefill", options.worker, engine));
  const std::unique_ptr<Device> device = CreateCpuDevice();
  ASSIGN_OR_RETURN(const std::unique_ptr<PrefillServer> server,
                   PrefillServer::Start(options.worker.server, scheduler, std::move(transports),
                                        {.engine = process->engine(),
                                         .device = device.get(),
                                         .clock = process->clock(),
                                         .random = process->random(),
                                         .metrics = process->metrics(),
                                         .drain = process->drain()}));
  process->LogReady(server->address().ToString(), server->instance_id());
  server->ServeUntilDrained(options.worker.drain);
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::PrefillOptions options;
  const absl::StatusOr<std::string> text =
      baton::ParseOptions(baton::PrefillProgram(), baton::DescribePrefill(&options), argc, argv);
  if (text.ok() && !text->empty()) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  const absl::Status status = text.ok() ? baton::Run(options) : text.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "baton_prefill: %s\n", std::string(status.message()).c_str());
  return 1;
}
