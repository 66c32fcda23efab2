#ifndef BATON_KV_TRANSFER_LANDING_TABLE_H_
#define BATON_KV_TRANSFER_LANDING_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/transfer_id.h"
#include "engine/kv/kv_pools.h"
#include "kv_transfer/kv_receiver.h"
#include "kv_transfer/landing_actions.h"

namespace baton {

// A transport that landings may use.
struct LandTransport {
  std::string name;
  bool data_on_stream = false;  // its bytes come as LandData
};

struct LandingSpec {
  TransferId transfer_id;
  std::string ticket;  // kTicketBytes
  std::string prefill_instance_id;
  std::string prefill_identity;    // that its certificate must have; empty: in plaintext
  SequenceKv kv;                   // LANDING
  std::vector<TokenRange> wanted;  // [cache group], empty: nothing of that group
  absl::Time expires;
};

// The decode side of all handoffs of a worker: which transfers are expected, from whom, into which blocks.
//
//   decode job                LandingTable                    Land stream / backend
//    | Add ------------------->|                               |
//    |                         |<------- OnConnected, open     |
//    |                         | opened ---------------------->|
//    |                         |<------------------ offer      |
//    |                         | ReceivePiece, take{ids} ----->|
//    |                         |<----------- OnVisible(id)     |   (before it, with a transport on the
//    stream: LandData) |                         |<----------- commit{token}     |
//    |<- Landed ---------------| committed, close(OK) -------->|
//    | or LandingFailed        |
//
// A commit waits for the last piece to become visible. A landing belongs to the first stream that opens it
// with the right ticket from the right instance, whose certificate has the right identity; from then on
// whatever goes wrong on that stream fails the landing, and what other streams do never touches it. Each Add
// is answered by one of Landed, LandingFailed and the caller's own Drop. Ended transfers are remembered for a
// while (tombstones), so that late messages and late opens are told apart from unknown ones.
//
// A state machine: no thread, socket or clock; belongs to one executor. Blocks of a landing that ended while
// a piece was being received stay pinned until OnVisible.
//
// Statuses, chosen for the router's table of retries: UNAVAILABLE a lost peer, DATA_LOSS a checksum,
// FAILED_PRECONDITION another layout or version, PERMISSION_DENIED a ticket or instance, NOT_FOUND an unknown
// transfer, DEADLINE_EXCEEDED expiry, INVALID_ARGUMENT a breach of the protocol, RESOURCE_EXHAUSTED too many
// streams or pieces.
class LandingTable {
 public:
  using Action = landing::Action;
  using Actions = landing::Actions;

  struct Options {
    std::vector<LandTransport> transports;
    ReceiverLimits receiver;
    uint32_t max_unopened_streams = 256;
    absl::Duration open_limit = absl::Seconds(5);  // connected -> open
    absl::Duration tombstone_life = absl::Seconds(60);
  };

  // Ordinary events of a network, as metrics count them.
  struct Counters {
    uint64_t refused_opens = 0;      // ticket, instance, unknown or ended transfer
    uint64_t protocol_breaches = 0;  // streams closed with INVALID_ARGUMENT
    uint64_t late_messages = 0;      // for streams or pieces that had ended: dropped
    uint64_t expired = 0;            // landings
  };

  // `pools` outlives the table.
  LandingTable(Options options, const KvPools* pools);

  // A transfer that is known, or was dropped before, is answered with LandingFailed(ALREADY_EXISTS or
  // CANCELLED).
  Actions Add(LandingSpec spec, absl::Time now);
  // The owner has no more use for it; an unknown one is remembered as dropped. No LandingFailed follows.
  Actions Drop(const TransferId& transfer_id, absl::Time now);
  Actions DropAll(absl::Time now);

  // `identity`: in the certificate of the stream's peer; empty in plaintext.
  Actions OnConnected(LandStreamId stream, absl::Time now, std::string identity = "");
  Actions OnMessage(LandStreamId stream, v1::LandRequest request, absl::Time now);
  // The piece is in its destination and the device can see it, or (not OK) the receive has ended without it.
  Actions OnVisible(LandStreamId stream, uint32_t piece_id, const absl::Status& status, absl::Time now);
  // The stream has ended, by the peer or the network. After a CloseStream it may come or not.
  Actions OnClosed(LandStreamId stream, const absl::Status& status, absl::Time now);
  Actions OnTimer(absl::Time now);

  size_t landings() const { return landings_.size(); }  // Added, neither Landed, failed nor dropped
  size_t streams() const { return streams_.size(); }    // connected, also those that have opened nothing
  size_t draining() const { return draining_.size(); }  // ended, a piece is still being received
  size_t tombstones() const { return tombstones_.size(); }
  const Counters& counters() const { return counters_; }
  // INTERNAL with the reason when the table contradicts itself.
  absl::Status CheckInvariants() const;

 private:
  struct Landing {
    LandingSpec spec;
    LandStreamId stream = 0;               // 0: not opened
    std::unique_ptr<KvReceiver> receiver;  // once opened
  };
  struct Stream {
    TransferId transfer_id;  // zero: not opened
    std::string identity;    // of the peer
    absl::Time open_by;
  };
  struct Tombstone {
    bool dropped_before_add = false;
  };
  struct Burial {
    absl::Time until;
    TransferId id;
  };

  void OnOpen(LandStreamId stream, const v1::LandOpen& open, absl::Time now, Actions* actions);
  // Of an open whose ticket and instance are right.
  absl::StatusOr<KvReceiver::Spec> ReadOpen(LandStreamId stream, const v1::LandOpen& open,
                                            const LandingSpec& landing) const;
  // Ends one landing: closes its stream with `status`, keeps what drains, leaves a tombstone.
  void End(const TransferId& transfer_id, const absl::Status& status, absl::Time now, Actions* actions);
  void Fail(const TransferId& transfer_id, const absl::Status& status, absl::Time now, Actions* actions);
  void Complete(const TransferId& transfer_id, absl::Time now, Actions* actions);
  // Closes a stream that has opened nothing.
  void Refuse(LandStreamId stream, const absl::Status& status, Actions* actions);
  void Bury(const TransferId& transfer_id, bool dropped_before_add, absl::Time now, Actions* actions);
  // Sees to it that OnTimer comes no later than `when`.
  void Arm(absl::Time when, Actions* actions);

  const Options options_;
  const KvPools* const pools_;
  const std::string layout_id_;

  std::map<TransferId, Landing> landings_;
  std::map<LandStreamId, Stream> streams_;
  uint32_t unopened_ = 0;  // of streams_
  std::map<LandStreamId, std::unique_ptr<KvReceiver>> draining_;
  std::map<TransferId, Tombstone> tombstones_;
  std::deque<Burial> burials_;  // of tombstones_, in the order in which they end
  Counters counters_;
  absl::Time timer_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_LANDING_TABLE_H_
