#include "engine/worker_server.h"

#include <utility>

#include "common/status_macros.h"

namespace baton {
namespace {

constexpr char kControl[] = "baton.v1.Control";

}  // namespace

WorkerServer::WorkerServer(std::vector<RoleService> services, WorkerControl::Worker worker, DrainState* drain)
    : services_(std::move(services)), control_(std::move(worker)), control_service_(&control_, drain) {}

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Listen(const GrpcServerOptions& options,
                                                                   std::vector<RoleService> services,
                                                                   WorkerControl::Worker worker,
                                                                   DrainState* drain, const Clock* clock) {
  std::unique_ptr<WorkerServer> server(new WorkerServer(std::move(services), std::move(worker), drain));
  std::vector<grpc::Service*> all = {&server->control_service_};
  for (const RoleService& each : server->services_) {
    all.push_back(each.service);
    server->health_.SetServing(each.name, false);
  }
  server->health_.SetServing(kControl, false);
  ASSIGN_OR_RETURN(server->server_, GrpcServer::Create(options, all, &server->health_, drain, clock));
  return server;
}

void WorkerServer::SetServing() {
  for (const RoleService& each : services_) health_.SetServing(each.name, true);
  health_.SetServing(kControl, true);
}

}  // namespace baton
