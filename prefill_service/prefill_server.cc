#include "prefill_service/prefill_server.h"

#include <algorithm>
#include <utility>

#include "common/grpc_channel.h"
#include "common/instance_id.h"
#include "common/status_macros.h"

namespace baton {
namespace {

// Channels to the decode workers that landings name.
ChannelFactory DecodeChannels(std::shared_ptr<const Credentials> credentials) {
  return [credentials = std::move(credentials)](const std::string& address, const std::string& identity) {
    if (credentials == nullptr) return CreateChannel(address);
    return ChannelTo(address, credentials->ForPeer(CallerRole::kDecode, identity));
  };
}

}  // namespace

PrefillServer::PrefillServer(std::string instance_id, const PrefillSchedulerOptions& scheduler,
                             std::vector<KvBackendKind> transports,
                             std::shared_ptr<const Credentials> credentials, const ServerParts& parts)
    : instance_id_(std::move(instance_id)),
      executor_("prefill", parts.clock),
      worker_({.scheduler = scheduler,
               .instance_id = instance_id_,
               .transports = std::move(transports),
               .channels = DecodeChannels(std::move(credentials))},
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
                                                                    const ServerParts& parts) {
  WorkerControl::Worker control = {.role = v1::ROLE_PREFILL,
                                   .instance_id = InstanceId::Mint(*parts.random).text(),
                                   .engine = parts.engine,
                                   .max_running = scheduler.max_running,
                                   .transports = NamesOf(transports)};
  std::unique_ptr<PrefillServer> prefill(
      new PrefillServer(control.instance_id, scheduler, std::move(transports), server.credentials, parts));
  PrefillWorker* const worker = &prefill->worker_;
  control.load = [worker] { return worker->load(); };
  control.abort = [worker](const std::string& id, std::function<void(absl::StatusOr<bool>)> done) {
    worker->Abort(id, std::move(done));
  };
  ASSIGN_OR_RETURN(prefill->server_,
                   WorkerServer::Listen(server, {{"baton.v1.PrefillWorker", &prefill->rpc_}},
                                        std::move(control), parts.drain, parts.clock));
  worker->WarmUp(scheduler.min_chunk_tokens);
  // A long step is no stall.
  prefill->server_->SetServing({.take_pulse = [worker] { return worker->TakePulse(); },
                                .hand_back = [worker] { worker->HandBack(); },
                                .stall_bound = std::max(parts.stall_timeout, 4 * scheduler.step_target),
                                .metrics = parts.metrics});
  return prefill;
}

}  // namespace baton
