#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/run_program.h"
#include "common/status_macros.h"
#include "decode_service/decode_options.h"
#include "decode_service/decode_server.h"
#include "engine/worker_process.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/kv_backend_registry.h"

namespace baton {
namespace {

absl::Status Run(const DecodeOptions& options) {
  RETURN_IF_ERROR(CheckAdvertise(options));
  KvBackendRegistry registry;
  registry.Register(GrpcBackend());
  ASSIGN_OR_RETURN(const std::vector<KvBackendKind> transports, registry.Select(options.worker.transports));
  const DecodeSchedulerOptions& scheduler = options.scheduler;
  // Every sequence gets a row in each step, whatever the budget.
  const uint32_t batch_rows = std::max(scheduler.token_budget, scheduler.max_running);
  ASSIGN_OR_RETURN(
      const EngineOptions engine,
      MakeEngineOptions(options.worker, std::min(scheduler.chunk_tokens, batch_rows), batch_rows));
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkerProcess> process,
                   WorkerProcess::Start("decode", options.worker, engine));
  ASSIGN_OR_RETURN(const std::unique_ptr<DecodeServer> server,
                   DecodeServer::Start(process->ServerOptions(options.worker), scheduler, options.advertise,
                                       transports, process->parts()));
  process->LogReady(server->address().ToString(), server->instance_id());
  server->ServeUntilDrained(options.worker.drain);
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::DecodeOptions options;
  return baton::RunProgram(baton::DecodeProgram(), baton::DescribeDecode(&options), argc, argv,
                           [&options] { return baton::Run(options); });
}
