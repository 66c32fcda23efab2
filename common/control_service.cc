#include "common/control_service.h"

#include <functional>
#include <memory>
#include <utility>

#include "common/error_details.h"
#include "common/grpc_status.h"
#include "common/parsed_method.h"
#include "common/protocol_version.h"
#include "common/server_stream.h"
#include "common/version.h"

namespace baton {
namespace {

// States of a drain that a slow reader has not fetched; more would be of no use to it.
constexpr size_t kMaxQueuedDrainStates = 1024;

}  // namespace

template <typename Request, typename Response>
void ControlService::Serve(int index, Method<Request, Response> method) {
  MarkMethodCallback(index, ParsedMethod<Request, Response>(std::bind_front(method, this)));
}

ControlService::ControlService(ControlProvider* provider, DrainState* drain)
    : provider_(provider), drain_(drain) {
  // In the order of the methods in the .proto.
  Serve(0, &ControlService::GetInfo);
  Serve(1, &ControlService::GetModels);
  Serve(2, &ControlService::GetModel);
  Serve(3, &ControlService::GetOwnLoad);
  Serve(4, &ControlService::GetWorkers);
  Serve(5, &ControlService::AbortRequest);
}

grpc::ServerUnaryReactor* ControlService::GetInfo(grpc::CallbackServerContext* context,
                                                  const v1::GetServerInfoRequest&,
                                                  v1::GetServerInfoResponse* response) {
  *response = provider_->ServerInfo();
  response->set_version(std::string(kVersion));
  response->set_protocol_min(kOldestProtocolVersion);
  response->set_protocol_max(kProtocolVersion);
  response->set_state(drain_->requested() ? v1::SERVER_STATE_DRAINING : v1::SERVER_STATE_SERVING);
  return FinishUnary(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ControlService::GetModels(grpc::CallbackServerContext* context,
                                                    const v1::ListModelsRequest&,
                                                    v1::ListModelsResponse* response) {
  for (v1::ModelInfo& model : provider_->Models()) *response->add_models() = std::move(model);
  return FinishUnary(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ControlService::GetModel(grpc::CallbackServerContext* context,
                                                   const v1::GetModelInfoRequest& request,
                                                   v1::GetModelInfoResponse* response) {
  for (v1::ModelInfo& model : provider_->Models()) {
    if (request.has_model() && request.model() != model.name()) continue;
    *response->mutable_model() = std::move(model);
    return FinishUnary(context, absl::OkStatus());
  }
  return FinishUnary(context,
                     absl::NotFoundError(request.has_model() ? "model: there is none of this name here"
                                                             : "model: none is served here"));
}

grpc::ServerUnaryReactor* ControlService::GetOwnLoad(grpc::CallbackServerContext* context,
                                                     const v1::GetLoadRequest&,
                                                     v1::GetLoadResponse* response) {
  *response = provider_->Load();
  return FinishUnary(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ControlService::GetWorkers(grpc::CallbackServerContext* context,
                                                     const v1::ListWorkersRequest&,
                                                     v1::ListWorkersResponse* response) {
  absl::StatusOr<v1::ListWorkersResponse> workers = provider_->Workers();
  const absl::Status status = workers.status();
  if (workers.ok()) *response = *std::move(workers);
  return FinishUnary(context, status);
}

grpc::ServerUnaryReactor* ControlService::AbortRequest(grpc::CallbackServerContext* context,
                                                       const v1::AbortRequest& request,
                                                       v1::AbortResponse* response) {
  if (request.request_id().empty()) return FinishUnary(context, InvalidField("request_id", "is empty"));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  provider_->Abort(request.request_id(), [reactor, response](const absl::StatusOr<bool>& found) {
    if (found.ok()) response->set_found(*found);
    reactor->Finish(ToGrpcStatus(found.status()));
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::DrainResponse>* ControlService::Drain(grpc::CallbackServerContext*,
                                                                   const v1::DrainRequest*) {
  // Known before the stream can end, so that the subscription is given up exactly once.
  const auto id = std::make_shared<DrainState::ListenerId>(0);
  const auto stream = ServerStream<v1::DrainResponse>::Create(
      {.max_queued = kMaxQueuedDrainStates, .on_done = [drain = drain_, id] { drain->Unsubscribe(*id); }});
  drain_->RequestDrain();
  *id = drain_->Subscribe([stream](const DrainState::Snapshot& now) {
    const bool drained = now.phase >= ServingPhase::kRefusing && now.running == 0;
    v1::DrainResponse message;
    message.set_requests_left(static_cast<uint32_t>(now.running));
    message.set_drained(drained);
    if (!stream->Write(std::move(message))) {
      stream->Cut(WithErrorInfo(absl::ResourceExhaustedError("the reader is too slow"), "SLOW_READER"));
    }
    if (drained) stream->Finish(absl::OkStatus());
  });
  return stream->reactor();
}

}  // namespace baton
