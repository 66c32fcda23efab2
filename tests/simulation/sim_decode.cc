#include <cstring>

#include "tests/simulation/sim_nodes.h"

namespace baton {
namespace {

// Copies between two lists of spans of the same length in all, each in the canonical order.
void CopySpans(const std::vector<DeviceSpan>& from, const std::vector<DeviceSpan>& to) {
  size_t to_index = 0;
  uint64_t to_offset = 0;
  for (const DeviceSpan& source : from) {
    for (uint64_t done = 0; done < source.bytes;) {
      const DeviceSpan& target = to[to_index];
      const uint64_t bytes = std::min(source.bytes - done, target.bytes - to_offset);
      std::memcpy(target.data + to_offset, source.data + done, bytes);
      done += bytes;
      to_offset += bytes;
      if (to_offset == target.bytes) {
        ++to_index;
        to_offset = 0;
      }
    }
  }
}

DecodeSchedulerOptions WithIdentity(DecodeSchedulerOptions options, const std::string& name,
                                    const std::string& instance_id) {
  options.instance_id = instance_id;
  options.advertise = name;
  options.transports = {"simulated"};
  return options;
}

}  // namespace

SimDecode::SimDecode(SimWorld* world, const SimDelays& delays, std::string name, std::string instance_id,
                     const ScriptedEngine::Options& engine, const DecodeSchedulerOptions& options)
    : SimWorker(world, delays, std::move(name), std::move(instance_id)),
      engine_(engine),
      scheduler_(WithIdentity(options, this->name(), this->instance_id()), &engine_.info(), &engine_.kv(),
                 &world->random()),
      table_({.transports = {{"simulated"}}}, &engine_.kv()),
      timer_(world),
      land_timer_(world) {}

void SimDecode::OnRequest(std::shared_ptr<SimLeg> leg, v1::DecodeRequest request, absl::Time deadline,
                          std::function<void(const v1::DecodeEvent&)> to_router) {
  const LegId id = AddLeg(leg);
  to_router_[id] = std::move(to_router);
  Perform(scheduler_.OnRequest(id, request, world_->now(), deadline, world_->now()));
}

void SimDecode::Perform(DecodeScheduler::Actions actions) {
  for (DecodeScheduler::Action& action : actions) {
    if (auto* send = std::get_if<DecodeScheduler::SendEvent>(&action)) {
      const std::shared_ptr<SimLeg> leg = legs_.at(send->leg);
      leg->to_router.Send([leg, event = std::move(send->event), to_router = to_router_.at(send->leg)] {
        if (leg->router_open) to_router(event);
      });
    } else if (auto* close = std::get_if<DecodeScheduler::CloseLeg>(&action)) {
      to_router_.erase(close->leg);
      CloseLegToRouter(close->leg, close->status);
    } else if (auto* start = std::get_if<DecodeScheduler::StartLanding>(&action)) {
      Perform(table_.Add(std::move(start->spec), world_->now()));
    } else if (auto* drop = std::get_if<DecodeScheduler::DropLanding>(&action)) {
      Perform(table_.Drop(drop->transfer_id, world_->now()));
    }
  }
  Arm();
  Step();
}

void SimDecode::OnLegClosed(LegId id) {
  to_router_.erase(id);
  Perform(scheduler_.OnLegClosed(id));
}

void SimDecode::Arm() {
  timer_.Arm(scheduler_.next_timer(), IfAlive([this] { Perform(scheduler_.OnTimer(world_->now())); }));
}

void SimDecode::Step() {
  if (stepping_) return;
  std::optional<StepPlan> plan = scheduler_.StartStep(world_->now());
  if (!plan) return;
  stepping_ = true;
  const absl::Duration took = delays_.step_base + delays_.step_row * plan->rows();
  world_->After(took, IfAlive([this, plan = *std::move(plan)] {
                  stepping_ = false;
                  Perform(scheduler_.OnStepDone(engine_.Execute(plan, nullptr), world_->now()));
                }));
}

LandStreamId SimDecode::Connect(std::function<void(v1::LandReply)> reply,
                                std::function<void(absl::Status)> closed) {
  const LandStreamId id = next_stream_++;
  streams_[id] = {std::move(reply), std::move(closed)};
  Perform(table_.OnConnected(id, world_->now()));
  return id;
}

void SimDecode::OnLandRequest(LandStreamId stream, v1::LandRequest request) {
  if (streams_.contains(stream)) Perform(table_.OnMessage(stream, std::move(request), world_->now()));
}

void SimDecode::OnLandClosed(LandStreamId stream, const absl::Status& status) {
  if (streams_.erase(stream) == 0) return;
  Perform(table_.OnClosed(stream, status, world_->now()));
  // Writes of a sender that is gone never arrive.
  std::vector<uint32_t> lost;
  for (auto it = receives_.begin(); it != receives_.end();) {
    const bool ends = it->second.stream == stream;
    if (ends) lost.push_back(it->first.second);
    it = ends ? receives_.erase(it) : std::next(it);
  }
  for (uint32_t piece : lost) {
    Perform(table_.OnVisible(stream, piece, absl::UnavailableError("the sender is gone"), world_->now()));
  }
}

void SimDecode::BeginWrite(const TransferId& transfer, uint32_t piece) {
  const auto it = receives_.find({transfer, piece});
  if (it != receives_.end()) it->second.writing = true;
}

bool SimDecode::Arrive(const TransferId& transfer, uint32_t piece, const std::vector<DeviceSpan>& source) {
  const auto it = receives_.find({transfer, piece});
  if (it == receives_.end()) return false;
  const Receive receive = it->second;
  receives_.erase(it);
  CopySpans(source, receive.destination);
  for (const DeviceSpan& span : source) bytes_landed_ += span.bytes;
  Perform(table_.OnVisible(receive.stream, piece, absl::OkStatus(), world_->now()));
  return true;
}

void SimDecode::Perform(landing::Actions actions) {
  for (landing::Action& action : actions) {
    if (auto* reply = std::get_if<landing::SendReply>(&action)) {
      if (streams_.contains(reply->stream)) streams_.at(reply->stream).reply(std::move(reply->reply));
    } else if (auto* receive = std::get_if<landing::ReceivePiece>(&action)) {
      receives_[{receive->transfer_id, receive->piece.id}] = {receive->stream,
                                                              std::move(receive->destination)};
    } else if (auto* withdraw = std::get_if<landing::WithdrawPieces>(&action)) {
      std::vector<uint32_t> ended;
      for (auto it = receives_.begin(); it != receives_.end();) {
        const bool ends = it->first.first == withdraw->transfer_id && !it->second.writing;
        if (ends) ended.push_back(it->first.second);
        it = ends ? receives_.erase(it) : std::next(it);
      }
      world_->After(
          absl::ZeroDuration(), IfAlive([this, stream = withdraw->stream, ended] {
            for (uint32_t piece : ended) {
              Perform(table_.OnVisible(stream, piece, absl::CancelledError("withdrawn"), world_->now()));
            }
          }));
    } else if (auto* close = std::get_if<landing::CloseStream>(&action)) {
      const auto it = streams_.find(close->stream);
      if (it == streams_.end()) continue;
      it->second.closed(close->status);
      streams_.erase(it);
    } else if (auto* landed = std::get_if<landing::Landed>(&action)) {
      Perform(scheduler_.OnLanded(landed->transfer_id, std::move(landed->kv), landed->first_token,
                                  landed->bytes, landed->transport, world_->now()));
    } else if (auto* failed = std::get_if<landing::LandingFailed>(&action)) {
      Perform(scheduler_.OnLandingFailed(failed->transfer_id, failed->status));
    } else if (auto* timer = std::get_if<landing::SetTimer>(&action)) {
      land_timer_.Arm(timer->when, IfAlive([this] { Perform(table_.OnTimer(world_->now())); }));
    }
  }
}

void SimDecode::Kill() {
  SimWorker::Kill();
  for (auto& [id, stream] : streams_) stream.closed(absl::UnavailableError("connection reset"));
  streams_.clear();
}

v1::GetServerInfoResponse SimDecode::Info() const { return Describe(v1::ROLE_DECODE, engine_, 64); }

absl::Status SimDecode::CheckInvariants() const {
  if (absl::Status status = scheduler_.CheckInvariants(); !status.ok()) return status;
  if (absl::Status status = table_.CheckInvariants(); !status.ok()) return status;
  return engine_.kv().CheckInvariants();
}

}  // namespace baton
