#include "engine/worker_server.h"

#include <utility>

#include "common/status_macros.h"

namespace baton {
namespace {

constexpr char kControl[] = "baton.v1.Control";

}  // namespace

WorkerServer::WorkerServer(std::vector<RoleService> services, WorkerControl::Worker worker, DrainState* drain,
                           const Clock* clock)
    : drain_(drain),
      clock_(clock),
      services_(std::move(services)),
      control_(std::move(worker)),
      control_service_(&control_, drain) {}

WorkerServer::~WorkerServer() {
  watch_.reset();
  if (drain_listener_ != 0) drain_->Unsubscribe(drain_listener_);
}

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Listen(const GrpcServerOptions& options,
                                                                   std::vector<RoleService> services,
                                                                   WorkerControl::Worker worker,
                                                                   DrainState* drain, const Clock* clock) {
  std::unique_ptr<WorkerServer> server(
      new WorkerServer(std::move(services), std::move(worker), drain, clock));
  std::vector<grpc::Service*> all = {&server->control_service_};
  for (const RoleService& each : server->services_) all.push_back(each.service);
  server->SetHealth(false);
  ASSIGN_OR_RETURN(server->server_, GrpcServer::Create(options, all, &server->health_, drain, clock));
  return server;
}

void WorkerServer::SetHealth(bool serving) {
  for (const RoleService& each : services_) health_.SetServing(each.name, serving);
  health_.SetServing(kControl, serving);
}

void WorkerServer::SetServing(Loop loop) {
  SetHealth(true);
  watch_ = std::make_unique<LoopWatch>(loop.stall_bound, clock_, loop.metrics, std::move(loop.take_pulse),
                                       [this](bool moves) { SetHealth(moves); });
  drain_listener_ =
      drain_->Subscribe([hand_back = std::move(loop.hand_back)](const DrainState::Snapshot& now) {
        if (now.phase == ServingPhase::kHandingBack) hand_back();
      });
}

}  // namespace baton
