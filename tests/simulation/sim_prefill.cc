#include "common/check.h"
#include "tests/simulation/sim_nodes.h"

namespace baton {

SimPrefill::SimPrefill(SimWorld* world, const SimDelays& delays, std::string name, std::string instance_id,
                       const ScriptedEngine::Options& engine, const PrefillSchedulerOptions& options,
                       std::function<std::shared_ptr<SimDecode>(const std::string&)> dial)
    : SimWorker(world, delays, std::move(name), std::move(instance_id)),
      engine_(engine),
      scheduler_(options, &engine_.info(), &engine_.kv()),
      dial_(std::move(dial)),
      timer_(world) {}

void SimPrefill::OnRequest(std::shared_ptr<SimLeg> leg, v1::PrefillRequest request, absl::Time deadline,
                           std::function<void(const v1::PrefillEvent&)> to_router) {
  const LegId id = AddLeg(leg);
  to_router_[id] = std::move(to_router);
  Perform(scheduler_.OnRequest(id, request, world_->now(), deadline, world_->now()));
}

void SimPrefill::Perform(PrefillScheduler::Actions actions) {
  for (PrefillScheduler::Action& action : actions) {
    if (auto* send = std::get_if<PrefillScheduler::SendEvent>(&action)) {
      const std::shared_ptr<SimLeg> leg = legs_.at(send->leg);
      leg->to_router.Send([leg, event = std::move(send->event), to_router = to_router_.at(send->leg)] {
        if (leg->router_open) to_router(event);
      });
    } else if (auto* close = std::get_if<PrefillScheduler::CloseLeg>(&action)) {
      to_router_.erase(close->leg);
      CloseLegToRouter(close->leg, close->status);
    } else if (auto* start = std::get_if<PrefillScheduler::StartHandoff>(&action)) {
      StartSender(std::move(*start));
    } else if (auto* computed = std::get_if<PrefillScheduler::HandoffComputed>(&action)) {
      ToSender(computed->transfer_id, [&](KvSender& sender) {
        return sender.OnComputed(computed->layers, computed->tokens, world_->now());
      });
    } else if (auto* done = std::get_if<PrefillScheduler::HandoffPromptDone>(&action)) {
      ToSender(done->transfer_id,
               [&](KvSender& sender) { return sender.OnPromptDone(done->first_token, world_->now()); });
    } else if (auto* cancel = std::get_if<PrefillScheduler::CancelHandoff>(&action)) {
      ToSender(cancel->transfer_id, [&](KvSender& sender) { return sender.Cancel(world_->now()); });
    }
  }
  Arm();
  Step();
}

void SimPrefill::OnLegClosed(LegId id) {
  to_router_.erase(id);
  Perform(scheduler_.OnLegClosed(id));
}

void SimPrefill::Arm() {
  timer_.Arm(scheduler_.next_timer(), IfAlive([this] { Perform(scheduler_.OnTimer(world_->now())); }));
}

void SimPrefill::Step() {
  if (stepping_) return;
  PrefillScheduler::Actions actions;
  std::optional<StepPlan> plan = scheduler_.StartStep(world_->now(), actions);
  if (plan) {
    stepping_ = true;
    const auto shared = std::make_shared<StepPlan>(*std::move(plan));
    const std::vector<LayerRange>& ranges = engine_.info().layer_ranges;
    const absl::Duration took = delays_.step_base + delays_.step_row * shared->rows();
    for (size_t i = 0; i < ranges.size(); ++i) {
      world_->After(took * static_cast<double>(i + 1) / static_cast<double>(ranges.size()),
                    IfAlive([this, shared, range = ranges[i], last = i + 1 == ranges.size()] {
                      engine_.ComputeLayers(*shared, range);
                      Perform(scheduler_.OnLayersDone(range));
                      if (!last) return;
                      stepping_ = false;
                      Perform(scheduler_.OnStepDone(engine_.Sample(*shared), world_->now()));
                    }));
    }
  }
  if (!actions.empty()) Perform(std::move(actions));
}

void SimPrefill::StartSender(PrefillScheduler::StartHandoff start) {
  const TransferId id = start.spec.transfer_id;
  KvSender::Spec spec;
  spec.transfer_id = id;
  spec.sender_instance_id = instance_id();
  spec.landing = start.spec.landing;
  spec.transport = "simulated";
  spec.prompt_tokens = start.spec.prompt_tokens;
  spec.deadline = start.spec.deadline;
  absl::StatusOr<std::unique_ptr<KvSender>> sender =
      KvSender::Create(std::move(spec), &engine_.kv(), std::move(start.source));
  BATON_CHECK(sender.ok());
  auto land = std::make_unique<Land>(world_, delays_);
  land->sender = *std::move(sender);
  land->peer = dial_(start.spec.landing.address());
  land->timer = std::make_unique<SimTimer>(world_);
  senders_[id] = std::move(land);
  ToSender(id, [&](KvSender& started) { return started.Start(world_->now()); });
}

void SimPrefill::ToSender(const TransferId& id, const SenderEvent& event) {
  const auto it = senders_.find(id);
  if (it != senders_.end()) Perform(id, event(*it->second->sender));
}

void SimPrefill::Perform(const TransferId& id, KvSender::Actions actions) {
  Land& land = *senders_.at(id);
  for (KvSender::Action& action : actions) {
    if (auto* send = std::get_if<KvSender::SendLand>(&action)) {
      SendLand(id, land, std::move(send->request));
    } else if (auto* move = std::get_if<KvSender::MovePiece>(&action)) {
      MovePiece(id, land, std::move(*move));
    } else if (std::get_if<KvSender::CloseLand>(&action)) {
      if (land.opened && !std::exchange(land.closed, true)) {
        land.out.Send([peer = land.peer, stream = land.stream] {
          if (peer->alive()) peer->OnLandClosed(*stream, absl::CancelledError("the sender cancelled"));
        });
      }
    } else if (auto* timer = std::get_if<KvSender::SetTimer>(&action)) {
      land.timer->Arm(timer->when, IfAlive([this, id] {
                        ToSender(id, [&](KvSender& sender) { return sender.OnTimer(world_->now()); });
                      }));
    } else if (auto* finished = std::get_if<KvSender::Finished>(&action)) {
      world_->After(absl::ZeroDuration(),
                    IfAlive([this, result = HandoffResult{id, finished->status, finished->bytes,
                                                          finished->handoff, "simulated"}] {
                      Perform(scheduler_.OnHandoffFinished(result));
                    }));
    }
  }
  if (land.sender->drained()) senders_.erase(id);
}

void SimPrefill::SendLand(const TransferId& id, Land& land, v1::LandRequest request) {
  const auto on_closed = [this, id](absl::Status status) {
    ToSender(id, [&](KvSender& sender) { return sender.OnClosed(status, world_->now()); });
  };
  if (!land.opened) {
    land.opened = true;
    if (land.peer == nullptr || !land.peer->alive()) {
      land.back.Send(IfAlive([on_closed] { on_closed(absl::UnavailableError("connection refused")); }));
      land.closed = true;
      return;
    }
    // Both callbacks keep the way back in order.
    auto back = std::make_shared<SimChannel>(world_, delays_.link_min, delays_.link_max);
    land.out.Send([this, id, peer = land.peer, stream = land.stream, back, on_closed] {
      if (!peer->alive()) return;
      *stream = peer->Connect(
          [this, id, back](v1::LandReply reply) {
            back->Send(IfAlive([this, id, reply = std::move(reply)] {
              ToSender(id, [&](KvSender& sender) { return sender.OnReply(reply, world_->now()); });
            }));
          },
          [this, back, on_closed](absl::Status status) {
            back->Send(IfAlive([on_closed, status] { on_closed(status); }));
          });
    });
  }
  land.out.Send([peer = land.peer, stream = land.stream, request = std::move(request)] {
    if (peer->alive()) peer->OnLandRequest(*stream, request);
  });
}

void SimPrefill::MovePiece(const TransferId& id, Land& land, KvSender::MovePiece move) {
  const uint32_t piece = move.piece.id;
  land.peer->BeginWrite(id, piece);
  const absl::Duration took = absl::Seconds(static_cast<double>(move.bytes) / delays_.bytes_per_second);
  world_->After(took, IfAlive([this, id, piece, peer = land.peer, source = std::move(move.source)] {
                  const bool arrived = peer->alive() && peer->Arrive(id, piece, source);
                  ToSender(id, [&](KvSender& sender) {
                    return sender.OnMoved(
                        piece, arrived ? absl::OkStatus() : absl::UnavailableError("nobody receives"),
                        world_->now());
                  });
                }));
}

void SimPrefill::Kill() {
  SimWorker::Kill();
  for (auto& [id, land] : senders_) {
    if (!land->opened || land->peer == nullptr) continue;
    land->out.Send([peer = land->peer, stream = land->stream] {
      if (peer->alive()) peer->OnLandClosed(*stream, absl::UnavailableError("connection reset"));
    });
  }
}

v1::GetServerInfoResponse SimPrefill::Info() const { return Describe(v1::ROLE_PREFILL, engine_, 32); }

absl::Status SimPrefill::CheckInvariants() const {
  if (absl::Status status = scheduler_.CheckInvariants(); !status.ok()) return status;
  for (const auto& [id, land] : senders_) {
    if (absl::Status status = land->sender->CheckInvariants(); !status.ok()) return status;
  }
  return engine_.kv().CheckInvariants();
}

}  // namespace baton
