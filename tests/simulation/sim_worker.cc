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

void SimWorker::Kill() {
  alive_ = false;
  *life_ = false;
  while (!legs_.empty()) CloseLegToRouter(legs_.begin()->first, absl::UnavailableError("connection reset"));
}

}  // namespace baton
