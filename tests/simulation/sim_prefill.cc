#include "tests/simulation/sim_prefill.h"

#include <utility>
#include <vector>

#include "common/check.h"
#include "common/status_macros.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "tests/simulation/sim_decode.h"

namespace baton {

SimPrefill::SimPrefill(const WorkerParts& parts, std::string address, std::string instance_id,
                       const WorkerPace& pace, const Options& options)
    : SimWorkerLoop(parts, std::move(address), std::move(instance_id), pace, options.engine,
                    options.scheduler),
      pieces_(options.pieces),
      backend_(GrpcBackend().make_sender(device_.get(), this)) {}

SimPrefill::~SimPrefill() {
  // A killed process ends in the middle of what it sends.
  for (const auto& [id, handoff] : handoffs_) {
    AnswerUnwritten(id, absl::UnavailableError("the process has ended"));
  }
}

const char* SimPrefill::Observe(const TransferId& /*transfer*/, const v1::PrefillEvent& event) {
  return event.has_first_token() ? "FirstToken" : event.has_done() ? "PrefillDone" : "Progress";
}

void SimPrefill::Perform(PrefillScheduler::StartHandoff& action) {
  transfer_.Post([this, shared = std::make_shared<PrefillScheduler::StartHandoff>(std::move(action))] {
    StartHandoff(*shared, std::move(shared->source));
  });
}

void SimPrefill::Perform(PrefillScheduler::HandoffComputed& action) {
  board_->OnPhase(action.transfer_id, CallPhase::kFirstLayers);
  transfer_.Post([this, action] {
    ToSender(action.transfer_id, [&](KvSender& sender) {
      return sender.OnComputed(action.layers, action.tokens, world_->now());
    });
  });
}

void SimPrefill::Perform(PrefillScheduler::HandoffPromptDone& action) {
  board_->OnPhase(action.transfer_id, CallPhase::kCommit);
  transfer_.Post([this, action] {
    ToSender(action.transfer_id,
             [&](KvSender& sender) { return sender.OnPromptDone(action.commit, world_->now()); });
  });
}

void SimPrefill::Perform(PrefillScheduler::CancelHandoff& action) {
  transfer_.Post([this, id = action.transfer_id] {
    ToSender(id, [&](KvSender& sender) { return sender.Cancel(world_->now()); });
  });
}

void SimPrefill::Run(StepPlan plan) {
  const std::vector<LayerRange>& ranges = engine().info().layer_ranges;
  const absl::Duration took = StepTime(plan.rows());
  const auto shared = std::make_shared<StepPlan>(std::move(plan));
  for (size_t i = 0; i < ranges.size(); ++i) {
    loop_.Reach(world_->now() + took * static_cast<double>(i + 1) / static_cast<double>(ranges.size()),
                [this, shared, range = ranges[i], last = i + 1 == ranges.size()] {
                  engine().ComputeLayers(*shared, range);
                  Perform(scheduler().OnLayersDone(range));
                  if (last) EndStep(engine().Sample(*shared));
                });
  }
}

void SimPrefill::StartHandoff(const PrefillScheduler::StartHandoff& start, PinnedKv source) {
  const TransferId id = start.spec.transfer_id;
  KvSender::Spec spec;
  spec.transfer_id = id;
  spec.sender_instance_id = instance_id();
  spec.landing = start.spec.landing;
  spec.transport = GrpcBackend().name;
  spec.prompt_tokens = start.spec.prompt_tokens;
  spec.deadline = start.spec.deadline;
  spec.pieces = pieces_;
  absl::StatusOr<std::unique_ptr<KvSender>> sender =
      KvSender::Create(std::move(spec), &engine().kv(), std::move(source));
  if (!sender.ok() || handoffs_.contains(id)) {
    return OnFinished(id, {.status = sender.ok() ? absl::AlreadyExistsError("the transfer was started before")
                                                 : sender.status()});
  }
  auto handoff = std::make_unique<Handoff>(&transfer_);
  handoff->sender = *std::move(sender);
  handoff->address = start.spec.landing.address();
  handoffs_[id] = std::move(handoff);
  ToSender(id, [&](KvSender& started) { return started.Start(world_->now()); });
}

void SimPrefill::ToSender(const TransferId& id, const SenderEvent& event) {
  const auto it = handoffs_.find(id);
  if (it != handoffs_.end()) Perform(id, event(*it->second->sender));
}

void SimPrefill::Perform(const TransferId& id, KvSender::Actions actions) {
  Handoff& handoff = *handoffs_.at(id);
  for (KvSender::Action& action : actions) {
    if (auto* send = std::get_if<KvSender::SendLand>(&action)) {
      SendLand(id, handoff, std::move(send->request));
    } else if (auto* move = std::get_if<KvSender::MovePiece>(&action)) {
      MovePiece(id, *move);
    } else if (std::get_if<KvSender::CancelMoves>(&action)) {
      backend_->Cancel(id);
    } else if (std::get_if<KvSender::CloseLand>(&action)) {
      handoff.stream->Cancel();
      AnswerUnwritten(id, absl::UnavailableError("the stream is closed"));
    } else if (auto* timer = std::get_if<KvSender::SetTimer>(&action)) {
      handoff.timer.Arm(timer->when, [this, id] {
        ToSender(id, [&](KvSender& sender) { return sender.OnTimer(world_->now()); });
      });
    } else if (auto* finished = std::get_if<KvSender::Finished>(&action)) {
      OnFinished(id, *finished);
    }
  }
  if (handoff.sender->drained()) handoffs_.erase(id);
}

void SimPrefill::OnFinished(const TransferId& id, const KvSender::Finished& finished) {
  const HandoffResult result{id, finished.status, finished.bytes, finished.handoff, GrpcBackend().name};
  loop_.Post([this, result] { Perform(scheduler().OnHandoffFinished(result)); });
}

void SimPrefill::OpenLand(const TransferId& id, Handoff& handoff, v1::LandRequest open) {
  handoff.stream = network_->Open(
      *this, Thread::kTransfer, handoff.address, Thread::kTransfer, "land", absl::InfiniteFuture(),
      [this, id, open = std::move(open)](SimProcess& server, const std::shared_ptr<SimStream>& stream) {
        SimDecode* const decode = dynamic_cast<SimDecode*>(&server);
        BATON_CHECK(decode != nullptr);
        decode->OnLand(stream, open, [this, id](const v1::LandReply& reply) {
          ToSender(id, [&](KvSender& sender) { return sender.OnReply(reply, world_->now()); });
        });
      },
      [this, id](const absl::Status& status) {
        ToSender(id, [&](KvSender& sender) { return sender.OnClosed(status, world_->now()); });
        AnswerUnwritten(id, status.ok() ? absl::UnavailableError("the stream has ended") : status);
      });
}

void SimPrefill::SendLand(const TransferId& id, Handoff& handoff, v1::LandRequest request) {
  if (request.has_open()) return OpenLand(id, handoff, std::move(request));
  const char* const what = request.has_offer() ? "offer" : request.has_commit() ? "commit" : "data";
  handoff.stream->Send(SimStream::kClient, what, [stream = handoff.stream, request = std::move(request)] {
    dynamic_cast<SimDecode*>(stream->server())->OnLandMessage(stream.get(), request);
  });
}

void SimPrefill::MovePiece(const TransferId& id, KvSender::MovePiece& move) {
  backend_->Move({id, move.piece.id, move.bytes, std::move(move.source)}, [this, id, piece = move.piece.id](
                                                                              absl::Status status) {
    transfer_.Post([this, id, piece, status] {
      ToSender(id, [&](KvSender& sender) { return sender.OnMoved(piece, status, world_->now()); });
    });
  });
}

void SimPrefill::WriteData(const TransferId& id, v1::LandData data, Written written) {
  const auto it = handoffs_.find(id);
  if (it == handoffs_.end() || !it->second->stream->open(SimStream::kClient)) {
    return std::move(written)(absl::UnavailableError("the stream is not open"));
  }
  Handoff& handoff = *it->second;
  handoff.unwritten = std::move(written);
  const absl::Duration took =
      absl::Seconds(static_cast<double>(data.bytes().size()) / pace_.bytes_per_second);
  if (std::exchange(corrupt_next_, false)) data.mutable_bytes()->front() ^= 1;
  v1::LandRequest request;
  *request.mutable_data() = std::move(data);
  transfer_.Reach(world_->now() + took, [this, id, request = std::move(request)] {
    const auto found = handoffs_.find(id);
    if (found == handoffs_.end() || found->second->unwritten == nullptr) return;
    SendLand(id, *found->second, request);
    AnswerUnwritten(id, absl::OkStatus());
  });
}

void SimPrefill::AnswerUnwritten(const TransferId& id, const absl::Status& status) {
  const auto it = handoffs_.find(id);
  if (it == handoffs_.end()) return;
  if (Written written = std::exchange(it->second->unwritten, nullptr)) std::move(written)(status);
}

v1::GetServerInfoResponse SimPrefill::Info() const { return Describe(v1::ROLE_PREFILL, engine(), 32); }

absl::Status SimPrefill::CheckForgotten() const {
  if (!Idle()) return absl::InternalError("holds something");
  return WaitsForTimer() ? absl::InternalError("waits for a timer") : absl::OkStatus();
}

absl::Status SimPrefill::CheckInvariants() const {
  RETURN_IF_ERROR(scheduler().CheckInvariants());
  for (const auto& [id, handoff] : handoffs_) RETURN_IF_ERROR(handoff->sender->CheckInvariants());
  return engine().kv().CheckInvariants();
}

}  // namespace baton
