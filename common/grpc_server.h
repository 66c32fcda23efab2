#ifndef BATON_COMMON_GRPC_SERVER_H_
#define BATON_COMMON_GRPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/access_table.h"
#include "common/clock.h"
#include "common/credentials.h"
#include "common/drain_state.h"
#include "common/health_service.h"
#include "common/host_port.h"
#include "grpcpp/server.h"

namespace baton {

struct GrpcServerOptions {
  std::string listen = "127.0.0.1:0";  // host:port; port 0 takes a free one.
  bool allow_plaintext = false;        // Needed where `listen` is not loopback and there is no TLS.
  bool reflection = true;              // So that grpcurl and ghz need no .proto files.
  std::string health_listen;  // host:port that serves grpc.health.v1 alone, in plaintext; empty: none.
  PortRole port = PortRole::kRouter;               // Whose rows of the access table hold here.
  Metrics* metrics = nullptr;                      // Counts refused calls; null: nothing does.
  std::shared_ptr<const Credentials> credentials;  // null: plaintext, nobody is asked who he is.
};

// A gRPC server from its port to its orderly end. A main reads:
//
//   DrainState drain;   HealthService health;   services ...                      // outlive the server
//   ASSIGN_OR_RETURN(auto server, GrpcServer::Create(options, {&a, &b}, &health, &drain, &clock));
//   SignalWatcher signals([&](int nth) { nth == 1 ? drain.RequestDrain() : drain.Hurry(); });
//   health.SetServing("baton.v1.A", true);
//   server->ServeUntilDrained(drain_options);                                     // until SIGTERM
//
// Services say themselves when they refuse: they ask `drain` for each piece of work.
class GrpcServer {
 public:
  // Listens at once. INVALID_ARGUMENT, FAILED_PRECONDITION (plaintext) or UNAVAILABLE (the port cannot be
  // had) naming `listen`.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Create(const GrpcServerOptions& options,
                                                            const std::vector<grpc::Service*>& services,
                                                            HealthService* health, DrainState* drain,
                                                            const Clock* clock);

  // Ends every call that still runs, without a drain, unless ServeUntilDrained has returned.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Where it listens, with the port that was taken.
  const HostPort& address() const { return address_; }
  // Where health alone is served; empty when it is not.
  const std::string& health_address() const { return health_address_; }

  // Serves until a drain is requested and over: health says NOT_SERVING, `options.delay` passes, new work is
  // refused, running work ends or `options.timeout` passes, the rest is cancelled. Called once, from a thread
  // that runs no call.
  void ServeUntilDrained(const DrainOptions& options);

 private:
  GrpcServer(HealthService* health, DrainState* drain, const Clock* clock)
      : health_(health), drain_(drain), clock_(clock) {}

  absl::Status ListenForHealth(const std::string& listen);
  void Shutdown(absl::Duration grace);

  // Constant once created.
  HealthService* const health_;
  DrainState* const drain_;
  const Clock* const clock_;
  HostPort address_;
  std::string health_address_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> health_server_;  // null: none

  bool shut_down_ = false;  // Of the thread that serves and destroys.
};

}  // namespace baton

#endif  // BATON_COMMON_GRPC_SERVER_H_
