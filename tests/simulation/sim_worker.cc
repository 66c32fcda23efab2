#include "common/protocol_version.h"
#include "tests/simulation/sim_nodes.h"

namespace baton {

SimWorker::SimWorker(SimWorld* world, const SimDelays& delays, std::string name, std::string instance_id)
    : world_(world), delays_(delays), name_(std::move(name)), instance_id_(std::move(instance_id)) {}

LegId SimWorker::AddLeg(std::shared_ptr<SimLeg> leg) {
  const LegId id = next_leg_++;
  legs_[id] = std::move(leg);
  return id;
}

std::function<void()> SimWorker::IfAlive(std::function<void()> event) {
  return [life = life_, event = std::move(event)] {
    if (*life) event();
  };
}

void SimWorker::CloseLegToRouter(LegId id, const absl::Status& status) {
  const auto it = legs_.find(id);
  if (it == legs_.end()) return;
  const std::shared_ptr<SimLeg> leg = it->second;
  legs_.erase(it);
  leg->to_router.Send([leg, status] {
    if (leg->router_open) leg->closed_at_router(status);
  });
}

void SimWorker::OnLegCancelled(const std::shared_ptr<SimLeg>& leg) {
  if (!alive_) return;
  for (const auto& [id, open] : legs_) {
    if (open != leg) continue;
    const LegId closed = id;
    legs_.erase(closed);
    OnLegClosed(closed);
    return;
  }
}

v1::GetServerInfoResponse SimWorker::Describe(v1::Role role, const ScriptedEngine& engine,
                                              uint32_t max_running) const {
  v1::GetServerInfoResponse info;
  info.set_role(role);
  info.set_instance_id(instance_id());
  info.set_protocol_min(kOldestProtocolVersion);
  info.set_protocol_max(kProtocolVersion);
  info.set_state(v1::SERVER_STATE_SERVING);
  info.mutable_model()->set_fingerprint(engine.info().fingerprint);
  info.mutable_model()->set_context_tokens(engine.info().context_tokens);
  info.mutable_limits()->set_block_tokens(engine.kv().geometry().block_tokens);
  info.mutable_limits()->set_kv_capacity_tokens(static_cast<double>(engine.kv().capacity_tokens()));
  info.mutable_limits()->set_max_running(max_running);
  return info;
}

void SimWorker::Kill() {
  alive_ = false;
  *life_ = false;
  while (!legs_.empty()) CloseLegToRouter(legs_.begin()->first, absl::UnavailableError("connection reset"));
}

}  // namespace baton
