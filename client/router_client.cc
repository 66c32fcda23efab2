#include "client/router_client.h"

#include <chrono>

#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

namespace baton {

RouterClient::RouterClient(const std::string& server, absl::Duration timeout)
    : timeout_(timeout),
      inference_(v1::Inference::NewStub(CreateChannel(server))),
      control_(v1::Control::NewStub(CreateChannel(server))) {}

void RouterClient::SetDeadline(grpc::ClientContext& context) const {
  if (timeout_ == absl::InfiniteDuration()) return;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout_));
}

absl::Status RouterClient::GenerateStream(
    const v1::GenerateRequest& request,
    const std::function<void(const v1::GenerateStreamResponse&)>& on_delta) {
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = inference_->GenerateStream(&context, request);
  v1::GenerateStreamResponse delta;
  while (reader->Read(&delta)) on_delta(delta);
  return FromGrpcStatus(reader->Finish());
}

template <typename Response, typename Call>
absl::StatusOr<Response> RouterClient::Unary(const Call& call) {
  grpc::ClientContext context;
  SetDeadline(context);
  Response response;
  const grpc::Status status = call(&context, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

absl::StatusOr<v1::GetServerInfoResponse> RouterClient::GetServerInfo() {
  return Unary<v1::GetServerInfoResponse>(
      [this](auto* context, auto* response) { return control_->GetServerInfo(context, {}, response); });
}

absl::StatusOr<v1::GetModelInfoResponse> RouterClient::GetModelInfo() {
  return Unary<v1::GetModelInfoResponse>(
      [this](auto* context, auto* response) { return control_->GetModelInfo(context, {}, response); });
}

absl::StatusOr<v1::GetLoadResponse> RouterClient::GetLoad() {
  return Unary<v1::GetLoadResponse>(
      [this](auto* context, auto* response) { return control_->GetLoad(context, {}, response); });
}

absl::StatusOr<v1::ListWorkersResponse> RouterClient::ListWorkers() {
  return Unary<v1::ListWorkersResponse>(
      [this](auto* context, auto* response) { return control_->ListWorkers(context, {}, response); });
}

}  // namespace baton
