#include "decode_service/decode_server.h"

#include <algorithm>
#include <utility>

#include "common/instance_id.h"
#include "common/status_macros.h"

namespace baton {
namespace {

DecodeSchedulerOptions OfWorker(DecodeSchedulerOptions options, const std::string& instance_id,
                                const std::vector<KvBackendKind>& transports) {
  options.instance_id = instance_id;
  options.transports = NamesOf(transports);
  return options;
}

}  // namespace

DecodeServer::DecodeServer(std::string instance_id, DecodeSchedulerOptions scheduler,
                           const std::vector<KvBackendKind>& transports, const ServerParts& parts)
    : instance_id_(std::move(instance_id)),
      executor_("decode", parts.clock),
      worker_(OfWorker(std::move(scheduler), instance_id_, transports), transports, parts.random,
              {.engine = parts.engine,
               .device = parts.device,
               .executor = &executor_,
               .clock = parts.clock,
               .metrics = parts.metrics}),
      rpc_(&worker_, parts.drain, parts.clock) {}

DecodeServer::~DecodeServer() {
  server_.reset();
  executor_.Stop();
}

absl::StatusOr<std::unique_ptr<DecodeServer>> DecodeServer::Start(
    const GrpcServerOptions& server, const DecodeSchedulerOptions& scheduler, const std::string& advertise,
    const std::vector<KvBackendKind>& transports, const ServerParts& parts) {
  std::unique_ptr<DecodeServer> decode(
      new DecodeServer(InstanceId::Mint(*parts.random).text(), scheduler, transports, parts));
  DecodeWorker* const worker = &decode->worker_;
  WorkerControl::Worker control = {
      .role = v1::ROLE_DECODE,
      .instance_id = decode->instance_id_,
      .engine = parts.engine,
      .max_running = scheduler.max_running,
      .reserve_tokens = scheduler.reserve_tokens,
      .transports = NamesOf(transports),
      .load = [worker] { return worker->load(); },
      .abort = [worker](
                   const std::string& id,
                   std::function<void(absl::StatusOr<bool>)> done) { worker->Abort(id, std::move(done)); }};
  ASSIGN_OR_RETURN(decode->server_, WorkerServer::Listen(server,
                                                         {{"baton.v1.DecodeWorker", &decode->rpc_},
                                                          {"baton.v1.KvTransfer", worker->land_service()}},
                                                         std::move(control), parts.drain, parts.clock));
  worker->Advertise(advertise.empty() ? decode->server_->address().ToString() : advertise);
  worker->WarmUp(scheduler.min_chunk_tokens);
  // A long step is no stall.
  decode->server_->SetServing({.take_pulse = [worker] { return worker->TakePulse(); },
                               .hand_back = [worker] { worker->HandBack(); },
                               .stall_bound = std::max(parts.stall_timeout, 4 * scheduler.step_target),
                               .metrics = parts.metrics});
  return decode;
}

}  // namespace baton
