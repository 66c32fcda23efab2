#include "client/router_client.h"

#include <chrono>

#include "common/credentials.h"
#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

namespace baton {

absl::StatusOr<std::shared_ptr<grpc::Channel>> DialRouter(const ConnectionOptions& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                   ClientCredentials(options.tls, options.token_file, options.server));
  return ChannelTo(options.server, credentials);
}

absl::StatusOr<std::unique_ptr<RouterClient>> RouterClient::Create(const ConnectionOptions& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, DialRouter(options));
  return std::unique_ptr<RouterClient>(new RouterClient(channel, options));
}

RouterClient::RouterClient(const std::shared_ptr<grpc::Channel>& channel, const ConnectionOptions& options)
    : timeout_(options.timeout),
      wait_for_ready_(options.wait_for_ready),
      inference_(v1::Inference::NewStub(channel)),
      control_(v1::Control::NewStub(channel)) {}

void RouterClient::Prepare(grpc::ClientContext& context) const {
  context.set_wait_for_ready(wait_for_ready_);
  if (timeout_ == absl::InfiniteDuration()) return;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout_));
}

absl::Status RouterClient::GenerateStream(
    const v1::GenerateRequest& request,
    const std::function<void(const v1::GenerateStreamResponse&)>& on_delta) {
  grpc::ClientContext context;
  Prepare(context);
  const auto reader = inference_->GenerateStream(&context, request);
  v1::GenerateStreamResponse delta;
  while (reader->Read(&delta)) on_delta(delta);
  return FromGrpcStatus(reader->Finish());
}

template <typename Response, typename Call>
absl::StatusOr<Response> RouterClient::Unary(const Call& call) {
  grpc::ClientContext context;
  Prepare(context);
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
