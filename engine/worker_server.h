#ifndef BATON_ENGINE_WORKER_SERVER_H_
#define BATON_ENGINE_WORKER_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/control_service.h"
#include "common/drain_state.h"
#include "common/grpc_server.h"
#include "common/health_service.h"
#include "engine/loop_watch.h"
#include "engine/worker_control.h"

namespace baton {

// The gRPC server of a worker: the services of its role, with Control and Health beside them. Its end cancels
// every call and waits for them.
class WorkerServer {
 public:
  struct RoleService {
    std::string name;  // for Health: "baton.v1.PrefillWorker"
    grpc::Service* service = nullptr;
  };

  // The loop behind the services.
  struct Loop {
    std::function<LoopPulse()> take_pulse;
    std::function<void()> hand_back;  // called with the drain's lock held
    absl::Duration stall_bound;
    Metrics* metrics = nullptr;
  };

  ~WorkerServer();

  // The services, `drain` and `clock` outlive the server. Listens at once; Health says that nothing is served
  // yet.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Listen(const GrpcServerOptions& options,
                                                              std::vector<RoleService> services,
                                                              WorkerControl::Worker worker, DrainState* drain,
                                                              const Clock* clock);

  const HostPort& address() const { return server_->address(); }
  // From now on Health says that the services take work, except while the loop stands still; and a drain
  // hands back what its time did not suffice for. Called once; the loop outlives the server.
  void SetServing(Loop loop);
  // See GrpcServer.
  void ServeUntilDrained(const DrainOptions& options) { server_->ServeUntilDrained(options); }

 private:
  WorkerServer(std::vector<RoleService> services, WorkerControl::Worker worker, DrainState* drain,
               const Clock* clock);
  void SetHealth(bool serving);

  DrainState* const drain_;
  const Clock* const clock_;
  const std::vector<RoleService> services_;
  WorkerControl control_;
  ControlService control_service_;
  HealthService health_;
  std::unique_ptr<GrpcServer> server_;
  DrainState::ListenerId drain_listener_ = 0;
  std::unique_ptr<LoopWatch> watch_;
};

}  // namespace baton

#endif  // BATON_ENGINE_WORKER_SERVER_H_
