#include "decode_service/decode_server.h"

#include <utility>

#include "common/instance_id.h"
#include "common/status_macros.h"

namespace baton {
namespace {

DecodeSchedulerOptions OfInstance(DecodeSchedulerOptions options, const std::string& instance_id) {
  options.instance_id = instance_id;
  return options;
}

}  // namespace

DecodeServer::DecodeServer(std::string instance_id, DecodeSchedulerOptions scheduler,
                           std::vector<KvBackendKind> transports, const Parts& parts)
    : instance_id_(std::move(instance_id)),
      executor_("decode", parts.clock),
      worker_(
          {.scheduler = OfInstance(std::move(scheduler), instance_id_), .transports = std::move(transports)},
          {.engine = parts.engine,
           .device = parts.device,
           .executor = &executor_,
           .clock = parts.clock,
           .random = parts.random,
           .metrics = parts.metrics}),
      rpc_(&worker_, parts.drain, parts.clock) {}

DecodeServer::~DecodeServer() {
  server_.reset();
  executor_.Stop();
}

absl::StatusOr<std::unique_ptr<DecodeServer>> DecodeServer::Start(const GrpcServerOptions& server,
                                                                  const DecodeSchedulerOptions& scheduler,
                                                                  const std::string& advertise,
                                                                  std::vector<KvBackendKind> transports,
                                                                  const Parts& parts) {
  std::unique_ptr<DecodeServer> decode(
      new DecodeServer(InstanceId::Mint(*parts.random).text(), scheduler, std::move(transports), parts));
  DecodeWorker* const worker = &decode->worker_;
  worker->Start();
  WorkerControl::Worker control = {
      .role = v1::ROLE_DECODE,
      .instance_id = decode->instance_id_,
      .engine = parts.engine,
      .max_running = scheduler.max_running,
      .transports = worker->transports(),
      .load = [worker] { return worker->load(); },
      .abort = [worker](
                   const std::string& id,
                   std::function<void(absl::StatusOr<bool>)> done) { worker->Abort(id, std::move(done)); }};
  ASSIGN_OR_RETURN(decode->server_, WorkerServer::Listen(server,
                                                         {{"baton.v1.DecodeWorker", &decode->rpc_},
                                                          {"baton.v1.KvTransfer", worker->land_service()}},
                                                         std::move(control), parts.drain, parts.clock));
  worker->Advertise(advertise.empty() ? decode->server_->address().ToString() : advertise);
  decode->server_->SetServing();
  return decode;
}

}  // namespace baton
