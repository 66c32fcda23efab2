#ifndef BATON_KV_TRANSFER_LANDING_ACTIONS_H_
#define BATON_KV_TRANSFER_LANDING_ACTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/transfer_id.h"
#include "engine/device/device.h"
#include "engine/kv/kv_pools.h"
#include "kv_transfer/transfer_plan.h"

namespace baton {

// One Land stream as the receiving worker sees it. Minted by the shell, never reused within a process.
using LandStreamId = uint64_t;

// What the owner of a LandingTable must do, in the order given.
namespace landing {

struct SendReply {
  LandStreamId stream = 0;
  v1::LandReply reply;
};

// The destination of a piece, which will come by `transport`. Answered by OnVisible, exactly once.
struct ReceivePiece {
  LandStreamId stream = 0;
  TransferId transfer_id;
  std::string transport;
  KvPiece piece;
  uint64_t bytes = 0;
  std::vector<DeviceSpan> destination;  // in the canonical order
};

// Bytes of a received piece that came on the Land stream: in order, within the piece, `last` exactly at its
// end.
struct DeliverData {
  LandStreamId stream = 0;
  TransferId transfer_id;
  std::string transport;
  uint32_t piece_id = 0;
  uint64_t offset = 0;
  std::string bytes;
  bool last = false;
  uint64_t checksum = 0;  // with `last`: XXH3-64 of the whole piece
};

// Receives not begun end now, the others when they can; each still answers with OnVisible.
struct WithdrawPieces {
  LandStreamId stream = 0;
  TransferId transfer_id;
  std::string transport;
};

// Ends the stream with this status, after the replies before it. No OnClosed is needed after it.
struct CloseStream {
  LandStreamId stream = 0;
  absl::Status status;
};

// Every wanted byte is in the pools and visible to the device; the blocks are still LANDING.
struct Landed {
  TransferId transfer_id;
  SequenceKv kv;
  v1::LandCommit commit;
  uint64_t bytes = 0;
  std::string transport;
};

// The landing is over and its blocks are given back.
struct LandingFailed {
  TransferId transfer_id;
  absl::Status status;
  std::string sender_instance_id;  // the prefill worker that this landing was for
};

// OnTimer at this time; replaces the one before.
struct SetTimer {
  absl::Time when;
};

using Action = std::variant<SendReply, ReceivePiece, DeliverData, WithdrawPieces, CloseStream, Landed,
                            LandingFailed, SetTimer>;
using Actions = std::vector<Action>;

}  // namespace landing
}  // namespace baton

#endif  // BATON_KV_TRANSFER_LANDING_ACTIONS_H_
