#include "common/grpc_server.h"

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/grpc_limits.h"
#include "common/status_macros.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/impl/server_builder_plugin.h"
#include "grpcpp/server_builder.h"

namespace baton {
namespace {

// For calls that are no work, such as a stream that reports the drain's last state.
constexpr absl::Duration kLastWordsGrace = absl::Seconds(1);

// Of the port that anybody may call: enough for the longest name of a service, and for probes.
constexpr int kMaxHealthMessageBytes = 4096;
constexpr int kMaxHealthStreams = 16;

// Reflection is a plugin that registers itself with every builder; this takes it out again.
class WithoutPlugins final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
  }
};

void SetLimits(bool public_port, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Some clients (Python's) look at a connection that carries no call every few seconds only, and would be
  // taken for dead. A port whose clients may be anybody's pings while calls run only, and minds nobody's
  // pings.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, public_port ? 0 : 1);
  if (public_port) builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  // Two processes that were given one port by mistake would otherwise share its connections.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Create(const GrpcServerOptions& options,
                                                               const std::vector<grpc::Service*>& services,
                                                               HealthService* health, DrainState* drain,
                                                               const Clock* clock) {
  absl::StatusOr<HostPort> listen = HostPort::Parse(options.listen);
  if (!listen.ok()) return absl::InvalidArgumentError(absl::StrCat("listen: ", listen.status().message()));
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::ServerCredentials> credentials,
                   Credentials::ForServer(options.credentials, *listen, options.port, options.allow_plaintext,
                                          options.metrics));
  grpc::ServerBuilder builder;
  SetLimits(/*public_port=*/options.port == PortRole::kRouter, &builder);
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutPlugins>());
  int port = 0;
  builder.AddListeningPort(options.listen, std::move(credentials), &port);
  builder.RegisterService(health);
  for (grpc::Service* service : services) builder.RegisterService(service);

  std::unique_ptr<GrpcServer> server(new GrpcServer(health, drain, clock));
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("listen: \"", options.listen, "\" cannot be had; is another process listening there?"));
  }
  server->address_ = {listen->host, static_cast<uint16_t>(port)};
  if (!options.health_listen.empty()) RETURN_IF_ERROR(server->ListenForHealth(options.health_listen));
  return server;
}

absl::Status GrpcServer::ListenForHealth(const std::string& listen) {
  absl::StatusOr<HostPort> address = HostPort::Parse(listen);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("health-listen: ", address.status().message()));
  }
  grpc::ServerBuilder builder;
  SetLimits(/*public_port=*/true, &builder);
  builder.SetMaxReceiveMessageSize(kMaxHealthMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxHealthStreams);
  builder.SetOption(std::make_unique<WithoutPlugins>());
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(health_);
  health_server_ = builder.BuildAndStart();
  if (health_server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("health-listen: \"", listen, "\" cannot be had; is another process listening there?"));
  }
  address->port = static_cast<uint16_t>(port);
  health_address_ = address->ToString();
  return absl::OkStatus();
}

GrpcServer::~GrpcServer() {
  if (!shut_down_) Shutdown(absl::ZeroDuration());
}

void GrpcServer::ServeUntilDrained(const DrainOptions& options) {
  BATON_CHECK(!shut_down_);
  DrainSequence sequence(options);
  while (sequence.phase() != ServingPhase::kStopping) {
    drain_->AwaitNextPhase(*clock_, &sequence);
    health_->StartDrain();
  }
  Shutdown(drain_->hurried() ? absl::ZeroDuration() : kLastWordsGrace);
}

void GrpcServer::Shutdown(absl::Duration grace) {
  shut_down_ = true;
  health_->Stop();
  const auto until = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace);
  if (server_ != nullptr) server_->Shutdown(until);
  if (health_server_ != nullptr) health_server_->Shutdown(until);
}

}  // namespace baton
