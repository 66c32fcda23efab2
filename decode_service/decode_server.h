#ifndef BATON_DECODE_SERVICE_DECODE_SERVER_H_
#define BATON_DECODE_SERVICE_DECODE_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grpc_server.h"
#include "common/serial_executor.h"
#include "decode_service/decode_rpc.h"
#include "decode_service/decode_worker.h"
#include "engine/server_parts.h"
#include "engine/worker_server.h"

namespace baton {

// A whole decode service over a loaded engine: its compute thread, its worker, its gRPC server.
class DecodeServer {
 public:
  // Listens at once; returns when the engine has warmed up and requests are taken. `advertise` is the address
  // that landings name; empty: where it listens.
  static absl::StatusOr<std::unique_ptr<DecodeServer>> Start(const GrpcServerOptions& server,
                                                             const DecodeSchedulerOptions& scheduler,
                                                             const std::string& advertise,
                                                             const std::vector<KvBackendKind>& transports,
                                                             const ServerParts& parts);
  // Ends every call that still runs.
  ~DecodeServer();

  const HostPort& address() const { return server_->address(); }
  const std::string& instance_id() const { return instance_id_; }
  void ServeUntilDrained(const DrainOptions& options) { server_->ServeUntilDrained(options); }

 private:
  DecodeServer(std::string instance_id, DecodeSchedulerOptions scheduler,
               const std::vector<KvBackendKind>& transports, const ServerParts& parts);

  const std::string instance_id_;
  SerialExecutor executor_;
  DecodeWorker worker_;
  DecodeRpc rpc_;
  std::unique_ptr<WorkerServer> server_;
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_SERVER_H_
