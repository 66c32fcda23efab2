#ifndef BATON_KV_TRANSFER_KV_SENDER_H_
#define BATON_KV_TRANSFER_KV_SENDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/transfer_id.h"
#include "engine/kv/kv_pools.h"
#include "engine/kv/ranges.h"
#include "kv_transfer/kv_coverage.h"
#include "kv_transfer/piece_coalescer.h"
#include "kv_transfer/pinned_kv.h"
#include "kv_transfer/transfer_plan.h"

namespace baton {

// The prefill side of one handoff: offers pieces of KV as they are computed, has the taken ones moved,
// commits.
//
//   job                     KvSender                        Land stream / backend
//    | Start -------------->| open ------------------------>|
//    | OnComputed --------->| offer ----------------------->|
//    |                      |<---------------------- opened |
//    |                      |<------------------ take{ids}  |
//    |                      | MovePiece ------------------->|
//    | OnComputed --------->| offer ----------------------->|
//    |                      |<--------------- OnMoved(id)   |
//    | OnPromptDone ------->| offer(rest), commit{token} -->|
//    |                      |<------------------- committed |
//    |<- Finished(OK) ------|                               |
//
// A state machine: no thread, socket or clock; belongs to one executor. Each event returns what its owner
// must do, in that order. Finished comes exactly once; afterwards events are still accepted and ignored.
// Blocks stay pinned until the last move has ended, so the owner destroys a sender only when drained();
// CancelMoves makes that soon.
class KvSender {
 public:
  struct Spec {
    TransferId transfer_id;
    std::string sender_instance_id;
    v1::Landing landing;
    std::string transport;
    uint32_t prompt_tokens = 0;
    absl::Time deadline;
    // The longest wait for the peer or the backend without a sign of either.
    absl::Duration stall_limit = absl::Seconds(5);
    PieceLimits pieces;  // what is offered
  };

  // Actions.
  struct SendLand {  // to landing.address, in order; the first opens the stream
    v1::LandRequest request;
  };
  struct MovePiece {  // answered by OnMoved, exactly once
    KvPiece piece;
    uint64_t bytes = 0;
    std::vector<DeviceSpan> source;  // in the canonical order
  };
  struct CancelMoves {
  };  // moves not begun end now, the others when they can; each still answers with OnMoved
  struct CloseLand {};  // cancels the stream if it is still open; no OnClosed is needed after it
  struct SetTimer {     // OnTimer at this time; replaces the one before
    absl::Time when;
  };
  struct Finished {
    absl::Status status;
    uint64_t bytes = 0;       // moved
    absl::Duration handoff;   // with an OK status: OnPromptDone -> committed
    absl::Duration transfer;  // with an OK status: first offer -> committed
  };
  using Action = std::variant<SendLand, MovePiece, CancelMoves, CloseLand, SetTimer, Finished>;
  using Actions = std::vector<Action>;

  // INVALID_ARGUMENT when the landing is malformed or does not fit the prompt, FAILED_PRECONDITION when its
  // version or transport is not spoken here. `pools` outlives the sender; `source` is the prompt's sequence
  // in them.
  static absl::StatusOr<std::unique_ptr<KvSender>> Create(Spec spec, const KvPools* pools, PinnedKv source);

  Actions Start(absl::Time now);
  // The KV of these tokens is in the pools for these layers of the model. Each (layer, token) once, in any
  // order.
  Actions OnComputed(LayerRange model_layers, TokenRange tokens, absl::Time now);
  // All of the prompt was computed. `commit` as it goes out, but for kv_bytes.
  Actions OnPromptDone(v1::LandCommit commit, absl::Time now);
  Actions OnReply(const v1::LandReply& reply, absl::Time now);
  // The source of the piece will not be read any more; not OK fails the transfer.
  Actions OnMoved(uint32_t piece_id, const absl::Status& status, absl::Time now);
  // The stream has ended, by the peer or the network.
  Actions OnClosed(const absl::Status& status, absl::Time now);
  Actions OnTimer(absl::Time now);
  Actions Cancel(absl::Time now);

  // Finished, and nothing reads the source any more.
  bool drained() const { return state_ == State::kFinished && moving_.empty(); }
  const TransferId& transfer_id() const { return spec_.transfer_id; }
  const std::string& transport() const { return spec_.transport; }
  // INTERNAL with the reason when this object contradicts itself.
  absl::Status CheckInvariants() const;

 private:
  enum class State : uint8_t { kCreated, kSending, kCommitting, kFinished };

  KvSender(Spec spec, const KvPools* pools, PinnedKv source, std::vector<TokenRange> wanted);
  bool Running() const { return state_ == State::kSending || state_ == State::kCommitting; }
  void Offer(const std::vector<KvPiece>& pieces, absl::Time now, Actions* actions);
  absl::Status OnTake(const v1::LandTake& take, Actions* actions);
  absl::Status OnCommitted(absl::Time now, Actions* actions);
  void Fail(absl::Status status, Actions* actions);
  void Finish(Finished finished, Actions* actions);
  // Sets the timer for whichever comes first, the deadline or the stall limit.
  void Rearm(Actions* actions);
  bool WaitsForPeer() const;

  const Spec spec_;
  const KvPools* const pools_;
  const uint32_t segment_tokens_;
  PinnedKv source_;  // emptied once drained

  State state_ = State::kCreated;
  bool opened_ = false;  // by the peer's word
  bool closed_ = false;  // the stream, by the peer
  PieceCoalescer coalescer_;
  KvCoverage computed_;
  const std::vector<TokenRange> wanted_;  // [cache group]
  uint32_t next_piece_id_ = 0;
  std::map<uint32_t, KvPiece> offered_;  // by id, not yet taken
  std::map<uint32_t, uint64_t> moving_;  // taken, OnMoved not yet called: id -> bytes
  uint64_t offered_bytes_ = 0;
  uint64_t moved_bytes_ = 0;
  std::optional<absl::Time> first_offer_;
  absl::Time prompt_done_;
  absl::Time last_sign_;  // of the peer or the backend, or when waiting for one began
  absl::Time timer_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_KV_SENDER_H_
