#ifndef BATON_KV_TRANSFER_KV_RECEIVER_H_
#define BATON_KV_TRANSFER_KV_RECEIVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/transfer_id.h"
#include "engine/kv/kv_pools.h"
#include "kv_transfer/kv_coverage.h"
#include "kv_transfer/landing_actions.h"
#include "kv_transfer/pinned_kv.h"
#include "kv_transfer/transfer_plan.h"

namespace baton {

struct ReceiverLimits {
  uint64_t max_bytes_outstanding = 16
                                   << 20;  // of pieces taken and not yet visible; one piece is always allowed
  uint64_t max_piece_bytes = 16 << 20;
  uint32_t max_waiting_pieces = 65536;  // offered and not yet taken
};

// The decode side of one handoff once its sender has opened it: checks what is offered, takes it piece by
// piece, knows when all of it is visible and committed. Everything that comes from the peer is checked here;
// a status that is not OK ends the handoff. Owned by LandingTable, on its executor.
//
// offered (waiting_) -> taken (receiving_, in the order of the takes) -> visible
class KvReceiver {
 public:
  struct Spec {
    LandStreamId stream = 0;
    TransferId transfer_id;
    std::string transport;
    bool data_on_stream = false;
    uint32_t sender_block_tokens = 0;
    std::vector<TokenRange> wanted;  // [cache group]
  };

  // `pools` outlives the receiver; `destination` is the landing's sequence in them.
  KvReceiver(Spec spec, const ReceiverLimits& limits, const KvPools* pools, PinnedKv destination);

  absl::Status OnOffer(const v1::LandOffer& offer, landing::Actions* actions);
  absl::Status OnData(v1::LandData data, landing::Actions* actions);
  absl::Status OnCommit(v1::LandCommit commit);
  // True when `piece_id` was being received. Its status, when not OK, is the caller's to act on.
  bool OnVisible(uint32_t piece_id, const absl::Status& status, landing::Actions* actions);
  // Nothing is taken any more; what is being received is withdrawn.
  void Stop(landing::Actions* actions);

  bool committed() const { return committed_; }
  // Committed, and every piece is visible.
  bool complete() const { return committed_ && waiting_.empty() && receiving_.empty() && !stopped_; }
  bool drained() const { return receiving_.empty(); }
  uint64_t bytes() const { return visible_bytes_; }
  const std::string& transport() const { return spec_.transport; }
  v1::LandCommit TakeCommit() { return std::move(commit_); }
  absl::Status CheckInvariants() const;

 private:
  struct Receiving {
    uint64_t bytes = 0;
    uint64_t delivered_bytes = 0;  // with data on the stream
  };

  void TakeMore(landing::Actions* actions);

  const Spec spec_;
  const ReceiverLimits limits_;
  const KvPools* const pools_;
  const PinnedKv destination_;
  const uint32_t segment_tokens_;

  KvCoverage offered_;
  uint64_t next_piece_id_ = 0;               // ids ascend
  std::deque<KvPiece> waiting_;              // offered, not taken
  std::map<uint32_t, Receiving> receiving_;  // by piece id, which is the order of the takes
  uint64_t offered_bytes_ = 0;
  uint64_t outstanding_bytes_ = 0;  // of receiving_
  uint64_t visible_bytes_ = 0;
  bool committed_ = false;
  bool stopped_ = false;
  v1::LandCommit commit_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_KV_RECEIVER_H_
