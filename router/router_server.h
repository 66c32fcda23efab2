#ifndef BATON_ROUTER_ROUTER_SERVER_H_
#define BATON_ROUTER_ROUTER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/control_service.h"
#include "common/drain_state.h"
#include "common/grpc_server.h"
#include "common/health_service.h"
#include "common/serial_executor.h"
#include "router/inference_service.h"
#include "router/router_loop.h"
#include "router/router_metrics.h"
#include "router/served_model.h"
#include "router/worker_stubs.h"
#include "router/worker_watch.h"

namespace baton {

// A whole router: its loop, its watch over the workers, its gRPC server. Health says that baton.v1.Inference
// takes work while some decode worker serves.
class RouterServer final : private ControlProvider {
 public:
  // What outlives the server. `random` is safe to call from any thread.
  struct Parts {
    const ServedModel* model = nullptr;
    const Clock* clock = nullptr;
    RandomSource* random = nullptr;
    Metrics* metrics = nullptr;
    DrainState* drain = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<RouterServer>> Start(const GrpcServerOptions& server,
                                                             const RouterOptions& router,
                                                             const InferenceService::Options& inference,
                                                             const WorkerWatch::Options& watch,
                                                             const Parts& parts);
  // Ends every call that still runs.
  ~RouterServer() override;

  const HostPort& address() const { return server_->address(); }
  const std::string& instance_id() const { return instance_id_; }
  void ServeUntilDrained(const DrainOptions& options) { server_->ServeUntilDrained(options); }

 private:
  RouterServer(const RouterOptions& router, const InferenceService::Options& inference,
               const std::shared_ptr<const Credentials>& credentials, const Parts& parts);

  v1::GetServerInfoResponse ServerInfo() const override;
  std::vector<v1::ModelInfo> Models() const override;
  v1::GetLoadResponse Load() const override { return loop_.board().load; }
  absl::StatusOr<v1::ListWorkersResponse> Workers() const override { return loop_.board().workers; }
  void Abort(const std::string& request_id, std::function<void(absl::StatusOr<bool> found)> done) override {
    loop_.Abort(request_id, std::move(done));
  }

  const std::string instance_id_;
  const ServedModel* const model_;
  RouterMetrics metrics_;
  WorkerStubs stubs_;
  HealthService health_;
  SerialExecutor executor_;
  RouterLoop loop_;
  InferenceService inference_;
  ControlService control_;
  std::unique_ptr<WorkerWatch> watch_;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_SERVER_H_
