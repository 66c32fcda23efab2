#include "tests/simulation/sim_decode.h"

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"

namespace baton {
namespace {

DecodeSchedulerOptions WithIdentity(DecodeSchedulerOptions options, const std::string& address,
                                    const std::string& instance_id) {
  options.instance_id = instance_id;
  options.advertise = address;
  options.transports = {GrpcBackend().name};
  return options;
}

LandingTable::Options TableOptions(const ReceiverLimits& receiver) {
  LandingTable::Options options;
  options.transports = {{GrpcBackend().name, GrpcBackend().data_on_stream}};
  options.receiver = receiver;
  return options;
}

}  // namespace

SimDecode::SimDecode(const WorkerParts& parts, std::string address, std::string instance_id,
                     const WorkerPace& pace, const Options& options)
    : SimWorkerLoop(parts, address, instance_id, pace, options.engine,
                    WithIdentity(options.scheduler, address, instance_id), &parts.world->random()),
      table_(TableOptions(options.receiver), &engine().kv()),
      land_timer_(&transfer_),
      backend_(GrpcBackend().make_receiver(device_.get())) {}

SimDecode::~SimDecode() {
  // A killed process ends in the middle of what it receives.
  for (const auto& [transfer, pieces] : receiving_) backend_->Withdraw(transfer);
}

const char* SimDecode::Observe(const TransferId& transfer, const v1::DecodeEvent& event) {
  if (event.has_reserved()) {
    board_->OnPhase(transfer, CallPhase::kPrefilling);
    return "Reserved";
  }
  if (event.has_tokens()) {
    board_->OnPhase(transfer, event.tokens().index() == 0 ? CallPhase::kFirstStep : CallPhase::kDecoding);
    return "Tokens";
  }
  return event.has_landed() ? "Landed" : event.has_done() ? "DecodeDone" : "Progress";
}

void SimDecode::Perform(DecodeScheduler::StartLanding& action) {
  ToTable([this, spec = std::make_shared<LandingSpec>(std::move(action.spec))] {
    return table_.Add(std::move(*spec), world_->now());
  });
}

void SimDecode::Perform(DecodeScheduler::DropLanding& action) {
  ToTable([this, id = action.transfer_id] { return table_.Drop(id, world_->now()); });
}

void SimDecode::Run(StepPlan plan) {
  loop_.Reach(world_->now() + StepTime(plan.rows()),
              [this, plan = std::move(plan)] { EndStep(engine().Execute(plan, nullptr)); });
}

void SimDecode::ToTable(std::function<landing::Actions()> event) {
  transfer_.Post([this, event = std::move(event)] { Perform(event()); });
}

void SimDecode::ToScheduler(std::function<DecodeScheduler::Actions()> event) {
  loop_.Post([this, event = std::move(event)] { Perform(event()); });
}

void SimDecode::OnLand(const std::shared_ptr<SimStream>& stream, const v1::LandRequest& open,
                       std::function<void(const v1::LandReply&)> on_reply) {
  const LandStreamId id = next_stream_++;
  streams_[id] = {stream, std::move(on_reply)};
  stream_ids_[stream.get()] = id;
  stream->set_on_closed_at_server([this, id, key = stream.get()](const absl::Status& status) {
    stream_ids_.erase(key);
    streams_.erase(id);
    Perform(table_.OnClosed(id, absl::UnavailableError(status.message()), world_->now()));
  });
  Perform(table_.OnConnected(id, world_->now()));
  OnLandMessage(stream.get(), open);
}

void SimDecode::OnLandMessage(const SimStream* stream, const v1::LandRequest& request) {
  const auto it = stream_ids_.find(stream);
  if (it != stream_ids_.end()) Perform(table_.OnMessage(it->second, request, world_->now()));
}

void SimDecode::Perform(landing::Actions actions) {
  for (landing::Action& action : actions) {
    if (auto* reply = std::get_if<landing::SendReply>(&action)) {
      Do(*reply);
    } else if (auto* receive = std::get_if<landing::ReceivePiece>(&action)) {
      Do(*receive);
    } else if (auto* deliver = std::get_if<landing::DeliverData>(&action)) {
      backend_->Deliver(deliver->transfer_id, deliver->piece_id, deliver->offset, std::move(deliver->bytes),
                        deliver->last ? std::optional<uint64_t>(deliver->checksum) : std::nullopt);
    } else if (auto* withdraw = std::get_if<landing::WithdrawPieces>(&action)) {
      backend_->Withdraw(withdraw->transfer_id);
    } else if (auto* close = std::get_if<landing::CloseStream>(&action)) {
      Do(*close);
    } else if (auto* landed = std::get_if<landing::Landed>(&action)) {
      Do(*landed);
    } else if (auto* failed = std::get_if<landing::LandingFailed>(&action)) {
      ToScheduler([this, failed = *failed] { return scheduler().OnLandingFailed(failed); });
    } else if (auto* timer = std::get_if<landing::SetTimer>(&action)) {
      land_timer_.Arm(timer->when, [this] { Perform(table_.OnTimer(world_->now())); });
    }
  }
}

void SimDecode::Do(landing::SendReply& action) {
  const auto it = streams_.find(action.stream);
  if (it == streams_.end()) return;
  const v1::LandReply& reply = action.reply;
  const char* const what = reply.has_opened() ? "opened" : reply.has_take() ? "take" : "committed";
  it->second.stream->Send(SimStream::kServer, what,
                          [reply, on_reply = it->second.on_reply] { on_reply(reply); });
}

void SimDecode::Do(landing::ReceivePiece& action) {
  const TransferId transfer = action.transfer_id;
  ++receiving_[transfer];
  backend_->Receive({transfer, action.piece.id, action.bytes, std::move(action.destination)},
                    [this, transfer, stream = action.stream, piece = action.piece.id](absl::Status status) {
                      if (status.ok()) board_->OnPhase(transfer, CallPhase::kMidTransfer);
                      ToTable([this, transfer, stream, piece, status] {
                        if (--receiving_[transfer] == 0) receiving_.erase(transfer);
                        return table_.OnVisible(stream, piece, status, world_->now());
                      });
                    });
}

void SimDecode::Do(landing::CloseStream& action) {
  const auto it = streams_.find(action.stream);
  if (it == streams_.end()) return;
  it->second.stream->Finish(action.status);
  stream_ids_.erase(it->second.stream.get());
  streams_.erase(it);
}

void SimDecode::Do(landing::Landed& action) {
  bytes_landed_ += action.bytes;
  board_->OnPhase(action.transfer_id, CallPhase::kFirstStep);
  ToScheduler([this, landed = std::make_shared<landing::Landed>(std::move(action))] {
    return scheduler().OnLanded(std::move(*landed), world_->now());
  });
}

v1::GetServerInfoResponse SimDecode::Info() const { return Describe(v1::ROLE_DECODE, engine(), 64); }

bool SimDecode::Idle() const {
  return NoLegs() && table_.landings() == 0 && table_.draining() == 0 && table_.streams() == 0 &&
         receiving_.empty();
}

absl::Status SimDecode::CheckForgotten() const {
  if (!Idle()) return absl::InternalError("holds something");
  if (table_.tombstones() > 0) return absl::InternalError("remembers a transfer for longer than it should");
  if (WaitsForTimer() || land_timer_.armed()) return absl::InternalError("waits for a timer");
  return absl::OkStatus();
}

absl::Status SimDecode::CheckInvariants() const {
  RETURN_IF_ERROR(scheduler().CheckInvariants());
  RETURN_IF_ERROR(table_.CheckInvariants());
  return engine().kv().CheckInvariants();
}

}  // namespace baton
