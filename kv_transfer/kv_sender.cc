#include "kv_transfer/kv_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kv_transfer/landing.h"

namespace baton {
namespace {

// Puts the peer's or the backend's failure into words that say whose it is; the code stays.
absl::Status Prefixed(const char* where, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

void FillPiece(const KvPiece& piece, v1::Piece* out) {
  out->set_id(piece.id);
  out->set_group(piece.group);
  out->set_layer_begin(piece.layers.begin);
  out->set_layer_end(piece.layers.end);
  out->set_token_begin(piece.tokens.begin);
  out->set_token_end(piece.tokens.end);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvSender>> KvSender::Create(Spec spec, const KvPools* pools, PinnedKv source) {
  const KvGeometry& geometry = pools->geometry();
  ASSIGN_OR_RETURN(std::vector<TokenRange> wanted, ReadLanding(spec.landing, geometry, spec.prompt_tokens));
  ASSIGN_OR_RETURN(spec.transport, ChooseTransport(spec.landing, {spec.transport}));
  if (source.tables.size() != geometry.groups.size()) {
    return absl::InternalError(absl::StrCat("the sequence has ", source.tables.size(),
                                            " block tables, there are ", geometry.groups.size(),
                                            " cache groups"));
  }
  for (uint32_t group = 0; group < wanted.size(); ++group) {
    if (TokensFit(geometry.block_tokens, source.tables[group].size(), wanted[group])) continue;
    return absl::InternalError(absl::StrCat("cache group ", group, ": ", source.tables[group].size(),
                                            " blocks do not hold tokens [", wanted[group].begin, ", ",
                                            wanted[group].end, ")"));
  }
  return std::unique_ptr<KvSender>(
      new KvSender(std::move(spec), pools, std::move(source), std::move(wanted)));
}

KvSender::KvSender(Spec spec, const KvPools* pools, PinnedKv source, std::vector<TokenRange> wanted)
    : spec_(std::move(spec)),
      pools_(pools),
      segment_tokens_(SegmentTokens(pools->geometry().block_tokens, spec_.landing.block_tokens())),
      source_(std::move(source)),
      coalescer_(pools->geometry(), wanted,
                 std::max(pools->geometry().block_tokens, spec_.landing.block_tokens()), spec_.pieces),
      computed_(pools->geometry(), wanted),
      wanted_(std::move(wanted)) {}

KvSender::Actions KvSender::Start(absl::Time now) {
  Actions actions;
  if (state_ != State::kCreated) return actions;
  state_ = State::kSending;
  SendLand open;
  v1::LandOpen* message = open.request.mutable_open();
  message->set_protocol_version(spec_.landing.protocol_version());
  message->set_transfer_id(spec_.transfer_id.ToBytes());
  message->set_ticket(spec_.landing.ticket());
  message->set_sender_instance_id(spec_.sender_instance_id);
  message->set_layout_id(pools_->geometry().LayoutId());
  message->set_block_tokens(pools_->geometry().block_tokens);
  message->set_transport(spec_.transport);
  actions.push_back(std::move(open));
  last_sign_ = now;
  Rearm(&actions);
  return actions;
}

KvSender::Actions KvSender::OnComputed(LayerRange model_layers, TokenRange tokens, absl::Time now) {
  Actions actions;
  if (!Running()) return actions;
  const KvGeometry& geometry = pools_->geometry();
  for (uint32_t group = 0; group < wanted_.size(); ++group) {
    const LayerRange layers = geometry.LayersOf(group, model_layers);
    const TokenRange wanted{std::max(tokens.begin, wanted_[group].begin),
                            std::min(tokens.end, wanted_[group].end)};
    if (layers.empty() || wanted.empty()) continue;
    if (absl::Status status = computed_.Add(group, layers, wanted); !status.ok()) {
      Fail(absl::InternalError(absl::StrCat("computed twice: ", status.message())), &actions);
      return actions;
    }
  }
  Offer(coalescer_.Computed(model_layers, tokens), now, &actions);
  return actions;
}

KvSender::Actions KvSender::OnPromptDone(v1::LandCommit commit, absl::Time now) {
  Actions actions;
  if (!Running() || state_ == State::kCommitting) return actions;
  Offer(coalescer_.Flush(), now, &actions);
  if (!computed_.complete()) {
    Fail(absl::InternalError(absl::StrCat("the prompt is done with ", computed_.missing(),
                                          " wanted (layer, token) cells not computed")),
         &actions);
    return actions;
  }
  if (!WaitsForPeer()) last_sign_ = now;
  state_ = State::kCommitting;
  prompt_done_ = now;
  commit.set_kv_bytes(static_cast<double>(offered_bytes_));
  SendLand land;
  *land.request.mutable_commit() = std::move(commit);
  actions.push_back(std::move(land));
  Rearm(&actions);
  return actions;
}

KvSender::Actions KvSender::OnReply(const v1::LandReply& reply, absl::Time now) {
  Actions actions;
  if (!Running()) return actions;
  last_sign_ = now;
  absl::Status status = absl::InvalidArgumentError("an empty reply");
  switch (reply.message_case()) {
    case v1::LandReply::kOpened:
      status = opened_ ? absl::InvalidArgumentError("opened twice") : absl::OkStatus();
      opened_ = true;
      break;
    case v1::LandReply::kTake:
      status = OnTake(reply.take(), &actions);
      break;
    case v1::LandReply::kCommitted:
      status = OnCommitted(now, &actions);
      break;
    case v1::LandReply::MESSAGE_NOT_SET:
      break;
  }
  if (!status.ok()) Fail(Prefixed("decode worker's reply", status), &actions);
  Rearm(&actions);
  return actions;
}

absl::Status KvSender::OnTake(const v1::LandTake& take, Actions* actions) {
  if (!opened_) return absl::InvalidArgumentError("a take before opened");
  for (const uint32_t id : take.piece_ids()) {
    const auto found = offered_.find(id);
    if (found == offered_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("piece ", id, " taken, which is not on offer"));
    }
    const KvPiece piece = found->second;
    offered_.erase(found);
    const KvGeometry& geometry = pools_->geometry();
    const uint64_t bytes = PieceBytes(geometry, piece);
    moving_.emplace(id, bytes);
    actions->push_back(MovePiece{piece, bytes,
                                 PieceSpans(geometry, pools_->pool(piece.group), source_.tables[piece.group],
                                            segment_tokens_, piece)});
  }
  return absl::OkStatus();
}

absl::Status KvSender::OnCommitted(absl::Time now, Actions* actions) {
  if (state_ != State::kCommitting) return absl::InvalidArgumentError("committed before the commit");
  if (!offered_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("committed with ", offered_.size(), " pieces not taken"));
  }
  // Everything is visible there, so everything was moved, even if the backend has yet to say so.
  Finish({absl::OkStatus(), offered_bytes_, now - prompt_done_, now - first_offer_.value_or(now)}, actions);
  return absl::OkStatus();
}

KvSender::Actions KvSender::OnMoved(uint32_t piece_id, const absl::Status& status, absl::Time now) {
  Actions actions;
  const auto found = moving_.find(piece_id);
  if (found == moving_.end()) return actions;
  if (status.ok()) moved_bytes_ += found->second;
  moving_.erase(found);
  if (drained()) source_ = PinnedKv();
  if (!Running()) return actions;
  last_sign_ = now;
  if (!status.ok()) Fail(Prefixed("moving KV", status), &actions);
  Rearm(&actions);
  return actions;
}

KvSender::Actions KvSender::OnClosed(const absl::Status& status, absl::Time now) {
  Actions actions;
  if (!Running()) return actions;
  closed_ = true;
  Fail(status.ok() ? absl::UnavailableError("the decode worker ended the handoff before it was committed")
                   : Prefixed("decode worker", status),
       &actions);
  return actions;
}

KvSender::Actions KvSender::OnTimer(absl::Time now) {
  Actions actions;
  if (!Running()) return actions;
  timer_ = absl::InfiniteFuture();
  if (now >= spec_.deadline) {
    Fail(absl::DeadlineExceededError("the handoff's time is up"), &actions);
  } else if (WaitsForPeer() && now >= last_sign_ + spec_.stall_limit) {
    Fail(absl::UnavailableError(absl::StrCat("the decode worker has been silent for ",
                                             absl::FormatDuration(now - last_sign_), " in a handoff")),
         &actions);
  }
  Rearm(&actions);
  return actions;
}

KvSender::Actions KvSender::Cancel(absl::Time now) {
  Actions actions;
  if (Running() || state_ == State::kCreated)
    Fail(absl::CancelledError("the handoff was cancelled"), &actions);
  return actions;
}

void KvSender::Offer(const std::vector<KvPiece>& pieces, absl::Time now, Actions* actions) {
  if (pieces.empty()) return;
  if (!WaitsForPeer()) last_sign_ = now;
  if (!first_offer_.has_value()) first_offer_ = now;
  SendLand offer;
  for (KvPiece piece : pieces) {
    piece.id = next_piece_id_++;
    FillPiece(piece, offer.request.mutable_offer()->add_pieces());
    offered_.emplace(piece.id, piece);
    offered_bytes_ += PieceBytes(pools_->geometry(), piece);
  }
  actions->push_back(std::move(offer));
  Rearm(actions);
}

void KvSender::Fail(absl::Status status, Actions* actions) {
  if (!moving_.empty()) actions->push_back(CancelMoves{});
  Finish({.status = std::move(status), .bytes = moved_bytes_}, actions);
}

void KvSender::Finish(Finished finished, Actions* actions) {
  if (state_ != State::kCreated && !closed_) actions->push_back(CloseLand{});
  state_ = State::kFinished;
  offered_.clear();
  if (drained()) source_ = PinnedKv();
  actions->push_back(std::move(finished));
}

bool KvSender::WaitsForPeer() const {
  return !opened_ || !offered_.empty() || !moving_.empty() || state_ == State::kCommitting;
}

void KvSender::Rearm(Actions* actions) {
  if (!Running()) return;
  absl::Time when = spec_.deadline;
  if (WaitsForPeer()) when = std::min(when, last_sign_ + spec_.stall_limit);
  // A timer that is too early is cheap: it looks again. One is set only when it would come too late.
  if (when >= timer_) return;
  timer_ = when;
  actions->push_back(SetTimer{when});
}

absl::Status KvSender::CheckInvariants() const {
  RETURN_IF_ERROR(computed_.CheckInvariants());
  if (drained() && !source_.pins.empty()) return absl::InternalError("drained with blocks pinned");
  if (!drained() && source_.tables.empty()) return absl::InternalError("blocks given back before the end");
  for (const auto& [id, piece] : offered_) {
    if (moving_.count(id) != 0)
      return absl::InternalError(absl::StrCat("piece ", id, " is on offer and moving"));
    if (id >= next_piece_id_) return absl::InternalError(absl::StrCat("piece ", id, " was never offered"));
  }
  if (moved_bytes_ > offered_bytes_) return absl::InternalError("more bytes moved than offered");
  if (Running() && timer_ == absl::InfiniteFuture() && spec_.deadline != absl::InfiniteFuture()) {
    return absl::InternalError("running without a timer");
  }
  return absl::OkStatus();
}

}  // namespace baton
