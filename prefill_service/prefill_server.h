#ifndef BATON_PREFILL_SERVICE_PREFILL_SERVER_H_
#define BATON_PREFILL_SERVICE_PREFILL_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/credentials.h"
#include "common/grpc_server.h"
#include "common/serial_executor.h"
#include "engine/server_parts.h"
#include "engine/worker_server.h"
#include "prefill_service/prefill_rpc.h"
#include "prefill_service/prefill_worker.h"

namespace baton {

// A whole prefill service over a loaded engine: its compute thread, its worker, its gRPC server.
class PrefillServer {
 public:
  // Listens at once; returns when the engine has warmed up and requests are taken.
  static absl::StatusOr<std::unique_ptr<PrefillServer>> Start(const GrpcServerOptions& server,
                                                              const PrefillSchedulerOptions& scheduler,
                                                              std::vector<KvBackendKind> transports,
                                                              const ServerParts& parts);
  // Ends every call that still runs.
  ~PrefillServer();

  const HostPort& address() const { return server_->address(); }
  const std::string& instance_id() const { return instance_id_; }
  void ServeUntilDrained(const DrainOptions& options) { server_->ServeUntilDrained(options); }

 private:
  PrefillServer(std::string instance_id, const PrefillSchedulerOptions& scheduler,
                std::vector<KvBackendKind> transports, std::shared_ptr<const Credentials> credentials,
                const ServerParts& parts);

  const std::string instance_id_;
  SerialExecutor executor_;
  PrefillWorker worker_;
  PrefillRpc rpc_;
  std::unique_ptr<WorkerServer> server_;
};

}  // namespace baton

#endif  // BATON_PREFILL_SERVICE_PREFILL_SERVER_H_
