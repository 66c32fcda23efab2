#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/run_program.h"
#include "common/status_macros.h"
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
  ASSIGN_OR_RETURN(const std::unique_ptr<PrefillServer> server,
                   PrefillServer::Start(process->ServerOptions(options.worker), scheduler,
                                        std::move(transports), process->parts()));
  process->LogReady(server->address().ToString(), server->instance_id());
  server->ServeUntilDrained(options.worker.drain);
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::PrefillOptions options;
  return baton::RunProgram(baton::PrefillProgram(), baton::DescribePrefill(&options), argc, argv,
                           [&options] { return baton::Run(options); });
}
