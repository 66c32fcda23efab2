#include "prefill_service/prefill_server.h"

#include <utility>

#include "common/grpc_channel.h"
#include "common/instance_id.h"
#include "common/status_macros.h"

namespace baton {
namespace {

std::vector<std::string> NamesOf(const std::vector<KvBackendKind>& kinds) {
  std::vector<std::string> names;
  for (const KvBackendKind& kind : kinds) names.push_back(kind.name);
  return names;
}

}  // namespace

PrefillServer::PrefillServer(std::string instance_id, const PrefillSchedulerOptions& scheduler,
                             std::vector<KvBackendKind> transports, const Parts& parts)
    : instance_id_(std::move(instance_id)),
      executor_("prefill", parts.clock),
      worker_({.scheduler = scheduler,
               .instance_id = instance_id_,
               .transports = std::move(transports),
               .channels = [](const std::string& address) { return CreateChannel(address); }},
              {.engine = parts.engine,
               .device = parts.device,
               .executor = &executor_,
               .clock = parts.clock,
               .metrics = parts.metrics}),
      rpc_(&worker_, parts.drain, parts.clock) {}

PrefillServer::~PrefillServer() {
  server_.reset();
  executor_.Stop();
}

absl::StatusOr<std::unique_ptr<PrefillServer>> PrefillServer::Start(const GrpcServerOptions& server,
                                                                    const PrefillSchedulerOptions& scheduler,
                                                                    std::vector<KvBackendKind> transports,
                                                                    const Parts& parts) {
  WorkerControl::Worker control = {.role = v1::ROLE_PREFILL,
                                   .instance_id = InstanceId::Mint(*parts.random).text(),
                                   .engine = parts.engine,
                                   .max_running = scheduler.max_running,
                                   .transports = NamesOf(transports)};
  std::unique_ptr<PrefillServer> prefill(
      new PrefillServer(control.instance_id, scheduler, std::move(transports), parts));
  PrefillWorker* const worker = &prefill->worker_;
  worker->Start();
  control.load = [worker] { return worker->load(); };
  control.abort = [worker](const std::string& id, std::function<void(absl::StatusOr<bool>)> done) {
    worker->Abort(id, std::move(done));
  };
  ASSIGN_OR_RETURN(prefill->server_,
                   WorkerServer::Listen(server, {{"baton.v1.PrefillWorker", &prefill->rpc_}},
                                        std::move(control), parts.drain, parts.clock));
  prefill->server_->SetServing();
  return prefill;
}

}  // namespace baton
