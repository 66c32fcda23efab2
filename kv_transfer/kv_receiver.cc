#include "kv_transfer/kv_receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton {
namespace {

// Of a time that a sender reports: a day.
constexpr double kLongestMs = 24 * 60 * 60 * 1000.0;

absl::StatusOr<KvPiece> ReadPiece(const v1::Piece& piece) {
  if (!piece.has_id() || !piece.has_group() || !piece.has_layer_begin() || !piece.has_layer_end() ||
      !piece.has_token_begin() || !piece.has_token_end()) {
    return absl::InvalidArgumentError("a piece on offer lacks a field");
  }
  return KvPiece{piece.id(),
                 piece.group(),
                 {piece.layer_begin(), piece.layer_end()},
                 {piece.token_begin(), piece.token_end()}};
}

absl::Status Refuse(uint32_t piece_id, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("piece ", piece_id, ": ", what));
}

}  // namespace

KvReceiver::KvReceiver(Spec spec, const ReceiverLimits& limits, const KvPools* pools, PinnedKv destination)
    : spec_(std::move(spec)),
      limits_(limits),
      pools_(pools),
      destination_(std::move(destination)),
      segment_tokens_(SegmentTokens(pools->geometry().block_tokens, spec_.sender_block_tokens)),
      offered_(pools->geometry(), spec_.wanted) {}

absl::Status KvReceiver::OnOffer(const v1::LandOffer& offer, landing::Actions* actions) {
  if (committed_) return absl::InvalidArgumentError("an offer after the commit");
  if (offer.pieces().empty()) return absl::InvalidArgumentError("an offer of nothing");
  for (const v1::Piece& message : offer.pieces()) {
    ASSIGN_OR_RETURN(const KvPiece piece, ReadPiece(message));
    if (piece.id < next_piece_id_) {
      return Refuse(piece.id, absl::StrCat("ids must ascend, the next is ", next_piece_id_, " or more"));
    }
    next_piece_id_ = uint64_t{piece.id} + 1;
    RETURN_IF_ERROR(CheckPiece(pools_->geometry(), piece));
    // Before its bytes are counted: a wanted piece is small enough to count.
    if (absl::Status status = offered_.Add(piece.group, piece.layers, piece.tokens); !status.ok()) {
      return Refuse(piece.id, std::string(status.message()));
    }
    const uint64_t bytes = PieceBytes(pools_->geometry(), piece);
    if (bytes > limits_.max_piece_bytes) {
      return Refuse(piece.id, absl::StrCat(bytes, " bytes, the limit is ", limits_.max_piece_bytes));
    }
    if (waiting_.size() >= limits_.max_waiting_pieces) {
      return absl::ResourceExhaustedError(
          absl::StrCat(waiting_.size(), " pieces are waiting, the limit is ", limits_.max_waiting_pieces));
    }
    offered_bytes_ += bytes;
    waiting_.push_back(piece);
  }
  TakeMore(actions);
  return absl::OkStatus();
}

absl::Status KvReceiver::OnData(v1::LandData data, landing::Actions* actions) {
  if (!spec_.data_on_stream) {
    return absl::InvalidArgumentError(
        absl::StrCat("transport ", spec_.transport, " has no data on the stream"));
  }
  if (!data.has_piece_id() || !data.has_offset() || data.bytes().empty()) {
    return absl::InvalidArgumentError("data without a piece, an offset or bytes");
  }
  const auto next = std::find_if(receiving_.begin(), receiving_.end(), [](const auto& entry) {
    return entry.second.delivered_bytes < entry.second.bytes;
  });
  if (next == receiving_.end() || next->first != data.piece_id()) {
    return Refuse(data.piece_id(), "data out of turn, or for a piece that was not taken");
  }
  Receiving& piece = next->second;
  if (data.offset() != piece.delivered_bytes) {
    return Refuse(data.piece_id(),
                  absl::StrCat("offset is ", data.offset(), ", next is ", piece.delivered_bytes));
  }
  if (data.bytes().size() > piece.bytes - piece.delivered_bytes) {
    return Refuse(data.piece_id(),
                  absl::StrCat(data.bytes().size(), " bytes at offset ", data.offset(), " of ", piece.bytes));
  }
  piece.delivered_bytes += data.bytes().size();
  const bool last = piece.delivered_bytes == piece.bytes;
  if (last != data.has_checksum()) {
    return Refuse(data.piece_id(),
                  last ? "no checksum with its last bytes" : "a checksum before its last bytes");
  }
  actions->push_back(landing::DeliverData{spec_.stream, spec_.transfer_id, spec_.transport, data.piece_id(),
                                          data.offset(), std::move(*data.mutable_bytes()), last,
                                          data.checksum()});
  return absl::OkStatus();
}

absl::Status KvReceiver::OnCommit(v1::LandCommit commit) {
  if (committed_) return absl::InvalidArgumentError("a second commit");
  if (!offered_.complete()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a commit with ", offered_.missing(), " wanted (layer, token) cells not offered"));
  }
  if (commit.kv_bytes() != static_cast<double>(offered_bytes_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a commit of ", commit.kv_bytes(), " bytes, ", offered_bytes_, " were offered"));
  }
  if (commit.has_first_token() && !commit.first_token().has_id()) {
    return absl::InvalidArgumentError("a first token without an id");
  }
  for (const double ms : {commit.prefill_queue_ms(), commit.prefill_compute_ms()}) {
    if (!(ms >= 0 && ms < kLongestMs)) {
      return absl::InvalidArgumentError(absl::StrCat("a prefill time of ", ms, " ms, at most ", kLongestMs));
    }
  }
  commit_ = std::move(commit);
  committed_ = true;
  return absl::OkStatus();
}

bool KvReceiver::OnVisible(uint32_t piece_id, const absl::Status& status, landing::Actions* actions) {
  const auto found = receiving_.find(piece_id);
  if (found == receiving_.end()) return false;
  outstanding_bytes_ -= found->second.bytes;
  if (status.ok()) visible_bytes_ += found->second.bytes;
  receiving_.erase(found);
  if (status.ok() && !stopped_) TakeMore(actions);
  return true;
}

void KvReceiver::Stop(landing::Actions* actions) {
  stopped_ = true;
  waiting_.clear();
  if (!receiving_.empty()) {
    actions->push_back(landing::WithdrawPieces{spec_.stream, spec_.transfer_id, spec_.transport});
  }
}

void KvReceiver::TakeMore(landing::Actions* actions) {
  const KvGeometry& geometry = pools_->geometry();
  landing::SendReply reply{.stream = spec_.stream};
  while (!waiting_.empty()) {
    const KvPiece piece = waiting_.front();
    const uint64_t bytes = PieceBytes(geometry, piece);
    if (!receiving_.empty() && outstanding_bytes_ + bytes > limits_.max_bytes_outstanding) break;
    waiting_.pop_front();
    outstanding_bytes_ += bytes;
    receiving_.emplace(piece.id, Receiving{bytes, 0});
    actions->push_back(
        landing::ReceivePiece{spec_.stream, spec_.transfer_id, spec_.transport, piece, bytes,
                              PieceSpans(geometry, pools_->pool(piece.group),
                                         destination_.tables[piece.group], segment_tokens_, piece)});
    reply.reply.mutable_take()->add_piece_ids(piece.id);
  }
  if (reply.reply.has_take()) actions->push_back(std::move(reply));
}

absl::Status KvReceiver::CheckInvariants() const {
  RETURN_IF_ERROR(offered_.CheckInvariants());
  uint64_t outstanding = 0;
  for (const auto& [id, piece] : receiving_) {
    outstanding += piece.bytes;
    if (piece.delivered_bytes > piece.bytes) {
      return absl::InternalError(absl::StrCat("piece ", id, " was delivered beyond its end"));
    }
  }
  if (outstanding != outstanding_bytes_) return absl::InternalError("outstanding bytes do not add up");
  if (outstanding > limits_.max_bytes_outstanding && receiving_.size() > 1) {
    return absl::InternalError(absl::StrCat(outstanding, " bytes outstanding, over the limit"));
  }
  uint64_t waiting = 0;
  for (const KvPiece& piece : waiting_) waiting += PieceBytes(pools_->geometry(), piece);
  if (!stopped_ && waiting + outstanding + visible_bytes_ != offered_bytes_) {
    return absl::InternalError("bytes waiting, outstanding and visible are not those offered");
  }
  if (!stopped_ && !waiting_.empty() && receiving_.empty())
    return absl::InternalError("nobody takes what waits");
  return absl::OkStatus();
}

}  // namespace baton
