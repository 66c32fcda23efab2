#include "kv_transfer/landing_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol_version.h"
#include "common/status_macros.h"
#include "kv_transfer/landing.h"

namespace baton {
namespace {

// As much of a peer's text as an error may repeat.
constexpr size_t kMaxQuotedBytes = 256;

absl::Status CheckSpec(const LandingSpec& spec, const KvGeometry& geometry) {
  if (spec.ticket.size() != kTicketBytes) return absl::InternalError("a landing without a ticket");
  if (spec.wanted.size() != geometry.groups.size() || spec.kv.groups() != geometry.groups.size()) {
    return absl::InternalError("a landing whose cache groups are not the pools'");
  }
  for (uint32_t group = 0; group < spec.wanted.size(); ++group) {
    if (TokensFit(geometry.block_tokens, spec.kv.table(group).size(), spec.wanted[group])) continue;
    return absl::InternalError(
        absl::StrCat("cache group ", group, ": the blocks do not hold the wanted tokens"));
  }
  return absl::OkStatus();
}

}  // namespace

LandingTable::LandingTable(Options options, const KvPools* pools)
    : options_(std::move(options)), pools_(pools), layout_id_(pools->geometry().LayoutId()) {}

LandingTable::Actions LandingTable::Add(LandingSpec spec, absl::Time now) {
  Actions actions;
  absl::Status status = CheckSpec(spec, pools_->geometry());
  const auto tombstone = tombstones_.find(spec.transfer_id);
  if (tombstone != tombstones_.end()) {
    status = tombstone->second.dropped_before_add
                 ? absl::CancelledError("the landing was dropped before it came")
                 : absl::AlreadyExistsError("the transfer has ended before");
  } else if (landings_.count(spec.transfer_id) != 0) {
    status = absl::AlreadyExistsError("the transfer has a landing");
  }
  if (!status.ok()) {
    actions.push_back(landing::LandingFailed{spec.transfer_id, status, std::move(spec.prefill_instance_id)});
    return actions;
  }
  Arm(spec.expires, &actions);
  const TransferId id = spec.transfer_id;
  landings_.emplace(id, Landing{std::move(spec), 0, nullptr});
  return actions;
}

LandingTable::Actions LandingTable::Drop(const TransferId& transfer_id, absl::Time now) {
  Actions actions;
  if (landings_.count(transfer_id) != 0) {
    End(transfer_id, absl::CancelledError("the decode worker's leg has ended"), now, &actions);
  } else {
    Bury(transfer_id, true, now, &actions);
  }
  return actions;
}

LandingTable::Actions LandingTable::DropAll(absl::Time now) {
  Actions actions;
  while (!landings_.empty()) {
    End(landings_.begin()->first, absl::UnavailableError("the decode worker is going"), now, &actions);
  }
  return actions;
}

LandingTable::Actions LandingTable::OnConnected(LandStreamId stream, absl::Time now, std::string identity) {
  Actions actions;
  if (unopened_ >= options_.max_unopened_streams) {
    actions.push_back(landing::CloseStream{
        stream, absl::ResourceExhaustedError(absl::StrCat(unopened_, " streams have opened nothing yet"))});
    return actions;
  }
  const absl::Time open_by = now + options_.open_limit;
  if (streams_.emplace(stream, Stream{TransferId(), std::move(identity), open_by}).second) ++unopened_;
  Arm(open_by, &actions);
  return actions;
}

LandingTable::Actions LandingTable::OnMessage(LandStreamId stream, v1::LandRequest request, absl::Time now) {
  Actions actions;
  const auto found = streams_.find(stream);
  if (found == streams_.end()) {
    ++counters_.late_messages;
    return actions;
  }
  const TransferId transfer_id = found->second.transfer_id;
  if (transfer_id == TransferId()) {
    if (request.has_open()) {
      OnOpen(stream, request.open(), now, &actions);
    } else {
      Refuse(stream, absl::InvalidArgumentError("the first message must be open"), &actions);
    }
    return actions;
  }
  KvReceiver& receiver = *landings_.at(transfer_id).receiver;
  absl::Status status;
  switch (request.message_case()) {
    case v1::LandRequest::kOpen:
      status = absl::InvalidArgumentError("opened twice");
      break;
    case v1::LandRequest::kOffer:
      status = receiver.OnOffer(request.offer(), &actions);
      break;
    case v1::LandRequest::kData:
      status = receiver.OnData(std::move(*request.mutable_data()), &actions);
      break;
    case v1::LandRequest::kCommit:
      status = receiver.OnCommit(std::move(*request.mutable_commit()));
      break;
    case v1::LandRequest::MESSAGE_NOT_SET:
      status = absl::InvalidArgumentError("an empty message");
      break;
  }
  if (!status.ok()) {
    Fail(transfer_id, status, now, &actions);
  } else if (receiver.complete()) {
    Complete(transfer_id, now, &actions);
  }
  return actions;
}

void LandingTable::OnOpen(LandStreamId stream, const v1::LandOpen& open, absl::Time now, Actions* actions) {
  const absl::StatusOr<TransferId> id = TransferId::FromBytes(open.transfer_id());
  if (!id.ok()) return Refuse(stream, id.status(), actions);
  const auto found = landings_.find(*id);
  if (found == landings_.end()) {
    const bool ended = tombstones_.count(*id) != 0;
    return Refuse(stream, absl::NotFoundError(ended ? "the transfer has ended" : "no such transfer"),
                  actions);
  }
  Landing& landing = found->second;
  if (!EqualTickets(open.ticket(), landing.spec.ticket)) {
    return Refuse(stream, absl::PermissionDeniedError("ticket: not the landing's"), actions);
  }
  if (landing.stream != 0) return Refuse(stream, absl::PermissionDeniedError("ticket: used before"), actions);
  if (open.sender_instance_id() != landing.spec.prefill_instance_id) {
    return Refuse(stream, absl::PermissionDeniedError("sender_instance_id: not the one expected"), actions);
  }
  if (!landing.spec.prefill_identity.empty() &&
      streams_.at(stream).identity != landing.spec.prefill_identity) {
    return Refuse(stream, absl::PermissionDeniedError("the certificate is not that of the worker expected"),
                  actions);
  }
  // From here on the landing stands or falls with this stream.
  landing.stream = stream;
  streams_.at(stream).transfer_id = *id;
  --unopened_;
  absl::StatusOr<KvReceiver::Spec> spec = ReadOpen(stream, open, landing.spec);
  if (!spec.ok()) return Fail(*id, spec.status(), now, actions);
  landing.receiver = std::make_unique<KvReceiver>(*std::move(spec), options_.receiver, pools_,
                                                  PinnedKv::Of(landing.spec.kv));
  landing::SendReply opened{.stream = stream};
  opened.reply.mutable_opened();
  actions->push_back(std::move(opened));
}

absl::StatusOr<KvReceiver::Spec> LandingTable::ReadOpen(LandStreamId stream, const v1::LandOpen& open,
                                                        const LandingSpec& landing) const {
  if (open.protocol_version() < kOldestProtocolVersion || open.protocol_version() > kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat("protocol_version is ", open.protocol_version(),
                                                      ", supported are ", kOldestProtocolVersion, " to ",
                                                      kProtocolVersion));
  }
  if (open.layout_id() != layout_id_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "layout_id: prefill has ", open.layout_id().substr(0, kMaxQuotedBytes), ", decode has ", layout_id_));
  }
  if (!std::has_single_bit(open.block_tokens()) || open.block_tokens() > kMaxBlockTokens) {
    return absl::InvalidArgumentError(absl::StrCat("block_tokens is ", open.block_tokens(),
                                                   ", must be a power of two up to ", kMaxBlockTokens));
  }
  const auto transport = std::find_if(options_.transports.begin(), options_.transports.end(),
                                      [&open](const LandTransport& t) { return t.name == open.transport(); });
  if (transport == options_.transports.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "transport is ", open.transport().substr(0, kMaxQuotedBytes), ", which the landing does not list"));
  }
  return KvReceiver::Spec{
      stream,        landing.transfer_id, transport->name, transport->data_on_stream, open.block_tokens(),
      landing.wanted};
}

LandingTable::Actions LandingTable::OnVisible(LandStreamId stream, uint32_t piece_id,
                                              const absl::Status& status, absl::Time now) {
  Actions actions;
  if (const auto drain = draining_.find(stream); drain != draining_.end()) {
    if (!drain->second->OnVisible(piece_id, status, &actions)) ++counters_.late_messages;
    if (drain->second->drained()) draining_.erase(drain);
    return actions;
  }
  const auto found = streams_.find(stream);
  const auto landing = found == streams_.end() ? landings_.end() : landings_.find(found->second.transfer_id);
  if (landing == landings_.end() || !landing->second.receiver->OnVisible(piece_id, status, &actions)) {
    ++counters_.late_messages;
    return actions;
  }
  const TransferId id = landing->first;
  if (!status.ok()) {
    Fail(id, status, now, &actions);
  } else if (landing->second.receiver->complete()) {
    Complete(id, now, &actions);
  }
  return actions;
}

LandingTable::Actions LandingTable::OnClosed(LandStreamId stream, const absl::Status& status,
                                             absl::Time now) {
  Actions actions;
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return actions;
  const TransferId id = found->second.transfer_id;
  if (id == TransferId()) --unopened_;
  streams_.erase(found);
  if (id != TransferId()) {
    const std::string why = status.ok() ? "without a commit" : std::string(status.message());
    Fail(id, absl::UnavailableError(absl::StrCat("the prefill worker's stream has ended: ", why)), now,
         &actions);
  }
  return actions;
}

LandingTable::Actions LandingTable::OnTimer(absl::Time now) {
  Actions actions;
  timer_ = absl::InfiniteFuture();
  std::vector<TransferId> expired;
  for (const auto& [id, landing] : landings_) {
    if (landing.spec.expires <= now) expired.push_back(id);
  }
  for (const TransferId& id : expired) {
    ++counters_.expired;
    Fail(id, absl::DeadlineExceededError("the landing's time is up"), now, &actions);
  }
  std::vector<LandStreamId> silent;
  for (const auto& [id, stream] : streams_) {
    if (stream.transfer_id == TransferId() && stream.open_by <= now) silent.push_back(id);
  }
  for (const LandStreamId stream : silent) {
    Refuse(stream, absl::DeadlineExceededError("nothing was opened on this stream"), &actions);
  }
  while (!burials_.empty() && burials_.front().until <= now) {
    tombstones_.erase(burials_.front().id);
    burials_.pop_front();
  }
  for (const auto& [id, landing] : landings_) Arm(landing.spec.expires, &actions);
  for (const auto& [id, stream] : streams_) {
    if (stream.transfer_id == TransferId()) Arm(stream.open_by, &actions);
  }
  if (!burials_.empty()) Arm(burials_.front().until, &actions);
  return actions;
}

void LandingTable::End(const TransferId& transfer_id, const absl::Status& status, absl::Time now,
                       Actions* actions) {
  auto node = landings_.extract(transfer_id);
  Landing& landing = node.mapped();
  if (landing.receiver != nullptr) landing.receiver->Stop(actions);
  if (streams_.erase(landing.stream) != 0) actions->push_back(landing::CloseStream{landing.stream, status});
  if (landing.receiver != nullptr && !landing.receiver->drained()) {
    draining_.emplace(landing.stream, std::move(landing.receiver));
  }
  Bury(transfer_id, false, now, actions);
}

void LandingTable::Fail(const TransferId& transfer_id, const absl::Status& status, absl::Time now,
                        Actions* actions) {
  if (status.code() == absl::StatusCode::kInvalidArgument) ++counters_.protocol_breaches;
  std::string sender = landings_.at(transfer_id).spec.prefill_instance_id;
  End(transfer_id, status, now, actions);
  actions->push_back(landing::LandingFailed{transfer_id, status, std::move(sender)});
}

void LandingTable::Complete(const TransferId& transfer_id, absl::Time now, Actions* actions) {
  Landing& landing = landings_.at(transfer_id);
  landing::SendReply committed{.stream = landing.stream};
  committed.reply.mutable_committed();
  actions->push_back(std::move(committed));
  landing::Landed landed{transfer_id, std::move(landing.spec.kv), landing.receiver->TakeCommit(),
                         landing.receiver->bytes(), landing.receiver->transport()};
  End(transfer_id, absl::OkStatus(), now, actions);
  actions->push_back(std::move(landed));
}

void LandingTable::Refuse(LandStreamId stream, const absl::Status& status, Actions* actions) {
  ++counters_.refused_opens;
  if (status.code() == absl::StatusCode::kInvalidArgument) ++counters_.protocol_breaches;
  streams_.erase(stream);
  --unopened_;
  actions->push_back(landing::CloseStream{stream, status});
}

void LandingTable::Bury(const TransferId& transfer_id, bool dropped_before_add, absl::Time now,
                        Actions* actions) {
  const absl::Time until = now + options_.tombstone_life;
  if (!tombstones_.emplace(transfer_id, Tombstone{dropped_before_add}).second) return;
  burials_.push_back({until, transfer_id});
  Arm(until, actions);
}

void LandingTable::Arm(absl::Time when, Actions* actions) {
  if (when >= timer_) return;
  timer_ = when;
  actions->push_back(landing::SetTimer{when});
}

absl::Status LandingTable::CheckInvariants() const {
  uint32_t unopened = 0;
  for (const auto& [id, stream] : streams_) {
    if (stream.transfer_id == TransferId()) {
      ++unopened;
      continue;
    }
    const auto landing = landings_.find(stream.transfer_id);
    if (landing == landings_.end() || landing->second.stream != id) {
      return absl::InternalError(absl::StrCat("stream ", id, " is open for a landing that is not its own"));
    }
  }
  if (unopened != unopened_) return absl::InternalError("unopened streams do not add up");
  for (const auto& [id, landing] : landings_) {
    if ((landing.stream != 0) != (landing.receiver != nullptr)) {
      return absl::InternalError(absl::StrCat("landing ", id.ToHex(), ": opened by half"));
    }
    if (tombstones_.count(id) != 0)
      return absl::InternalError(absl::StrCat(id.ToHex(), " lives and has ended"));
    if (landing.receiver == nullptr) continue;
    if (streams_.count(landing.stream) == 0) return absl::InternalError("a landing whose stream is gone");
    RETURN_IF_ERROR(landing.receiver->CheckInvariants());
    if (landing.receiver->complete()) return absl::InternalError("a complete landing that did not land");
  }
  for (const auto& [stream, receiver] : draining_) {
    if (receiver->drained()) return absl::InternalError("a drained receiver is kept");
    RETURN_IF_ERROR(receiver->CheckInvariants());
  }
  if (burials_.size() != tombstones_.size()) return absl::InternalError("tombstones without an end");
  const bool waits = unopened_ > 0 || !tombstones_.empty();
  if (waits && timer_ == absl::InfiniteFuture()) return absl::InternalError("waiting without a timer");
  return absl::OkStatus();
}

}  // namespace baton
