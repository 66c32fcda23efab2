#include "engine/worker_control.h"

namespace baton {

v1::GetServerInfoResponse WorkerControl::ServerInfo() const {
  v1::GetServerInfoResponse info;
  info.set_role(worker_.role);
  info.set_instance_id(worker_.instance_id);
  *info.mutable_model() = Models().front();
  const KvPools& pools = worker_.engine->kv();
  info.mutable_limits()->set_block_tokens(pools.geometry().block_tokens);
  info.mutable_limits()->set_kv_capacity_tokens(static_cast<double>(pools.capacity_tokens()));
  info.mutable_limits()->set_max_running(worker_.max_running);
  if (worker_.reserve_tokens > 0) info.mutable_limits()->set_reserve_tokens(worker_.reserve_tokens);
  info.mutable_limits()->mutable_transports()->Assign(worker_.transports.begin(), worker_.transports.end());
  return info;
}

std::vector<v1::ModelInfo> WorkerControl::Models() const {
  const EngineInfo& engine = worker_.engine->info();
  v1::ModelInfo model;
  model.set_name(engine.model_name);
  model.set_fingerprint(engine.fingerprint);
  model.set_vocab_size(engine.vocab_size);
  model.set_context_tokens(engine.context_tokens);
  model.set_prefill_recipe(engine.prefill_recipe);
  model.set_decode_recipe(engine.decode_recipe);
  model.set_has_chat_template(engine.has_chat_template);
  return {model};
}

absl::StatusOr<v1::ListWorkersResponse> WorkerControl::Workers() const {
  return absl::UnimplementedError("a worker knows no other workers; ask the router");
}

}  // namespace baton
