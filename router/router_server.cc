#include "router/router_server.h"

#include <utility>

#include "common/instance_id.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr char kInference[] = "baton.v1.Inference";
constexpr char kControl[] = "baton.v1.Control";

}  // namespace

RouterServer::RouterServer(const RouterOptions& router, const InferenceService::Options& inference,
                           const std::shared_ptr<const Credentials>& credentials, const Parts& parts)
    : instance_id_(InstanceId::Mint(*parts.random).text()),
      model_(parts.model),
      metrics_(parts.metrics),
      stubs_(credentials),
      executor_("router", parts.clock),
      loop_(router, parts.model->content_hash(),
            {.tokenizer = &parts.model->tokenizer(),
             .executor = &executor_,
             .clock = parts.clock,
             .random = parts.random,
             .metrics = &metrics_,
             .stubs = &stubs_}),
      inference_(inference, {.model = parts.model,
                             .loop = &loop_,
                             .clock = parts.clock,
                             .random = parts.random,
                             .drain = parts.drain,
                             .credentials = credentials}),
      control_(this, parts.drain) {}

absl::StatusOr<std::unique_ptr<RouterServer>> RouterServer::Start(const GrpcServerOptions& server,
                                                                  const RouterOptions& router,
                                                                  const InferenceService::Options& inference,
                                                                  const WorkerWatch::Options& watch,
                                                                  const Parts& parts) {
  std::unique_ptr<RouterServer> self(new RouterServer(router, inference, server.credentials, parts));
  self->health_.SetServing(kControl, true);
  self->health_.SetServing(kInference, false);
  self->loop_.OnServingChange(
      [health = &self->health_](bool can_serve) { health->SetServing(kInference, can_serve); });
  ASSIGN_OR_RETURN(self->server_, GrpcServer::Create(server, {&self->inference_, &self->control_},
                                                     &self->health_, parts.drain, parts.clock));
  self->watch_ = std::make_unique<WorkerWatch>(watch, parts.clock, &self->stubs_, &self->loop_);
  return self;
}

RouterServer::~RouterServer() {
  watch_.reset();
  server_.reset();  // cancels its calls, and the loop then cancels their legs
  loop_.AwaitNoLegs();
  executor_.Stop();
}

v1::GetServerInfoResponse RouterServer::ServerInfo() const {
  v1::GetServerInfoResponse info;
  info.set_role(v1::ROLE_ROUTER);
  info.set_instance_id(instance_id_);
  *info.mutable_model() = Models().front();
  return info;
}

std::vector<v1::ModelInfo> RouterServer::Models() const {
  const RouterLoop::Board board = loop_.board();
  v1::ModelInfo model = board.model;
  model.set_name(model_->name());
  model.set_vocab_size(model_->tokenizer().vocab_size());
  if (!board.can_serve) model.set_context_tokens(model_->context_tokens());
  model.set_has_chat_template(model_->chat_template() != nullptr);
  return {model};
}

}  // namespace baton
