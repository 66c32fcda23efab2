#ifndef BATON_KV_TRANSFER_KV_BACKEND_H_
#define BATON_KV_TRANSFER_KV_BACKEND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/transfer_id.h"
#include "engine/device/device.h"

// What moves the bytes of a handoff: one interface, two halves. Control (open, offer, take, commit) never
// goes through a backend, so a stuck one holds up no leg.
//
// The order is always: the receiver posts the destination, its take reaches the sender, the sender moves.
// Both sides list the bytes of a piece in the same canonical order. Pieces of one transfer are moved in the
// order in which they were received (posted), which is what an ordered send and receive pair needs; an
// address that a destination grants can travel with the take.
namespace baton {

// The memory of one piece on one side.
struct PieceBuffer {
  TransferId transfer_id;
  uint32_t piece_id = 0;
  uint64_t bytes = 0;  // the sum over spans
  std::vector<DeviceSpan> spans;
};

// Called exactly once, on any thread, also inside the call that was given it.
using PieceDone = absl::AnyInvocable<void(absl::Status) &&>;

// The sending half. Thread-safe. Its owner keeps the memory of a piece alive until `moved` is called.
class KvSendBackend {
 public:
  virtual ~KvSendBackend() = default;
  // Reads `source` and sends it to whoever received this piece; `moved` says that it will not be read any
  // more, and whether all of it was handed on.
  virtual void Move(PieceBuffer source, PieceDone moved) = 0;
  // Moves of this transfer that have not begun end with CANCELLED, the others as soon as they can.
  virtual void Cancel(const TransferId& transfer_id) = 0;
};

// The receiving half. Thread-safe. Its owner keeps the memory of a piece alive until `visible` is called.
class KvReceiveBackend {
 public:
  virtual ~KvReceiveBackend() = default;
  // Posts the destination of a piece; `visible` says that all of it is there and the device can see it, or
  // with an error (DATA_LOSS: it is not what was sent) that it will not be written any more.
  virtual void Receive(PieceBuffer destination, PieceDone visible) = 0;
  // Bytes of a posted piece that came on the Land stream: in order, and within the piece. `checksum` comes
  // with the last of them. A backend whose bytes travel elsewhere ends the piece with INVALID_ARGUMENT.
  virtual void Deliver(const TransferId& transfer_id, uint32_t piece_id, uint64_t offset, std::string bytes,
                       std::optional<uint64_t> checksum) = 0;
  // Pieces of this transfer that nothing has been written to end with CANCELLED, the others as soon as they
  // can.
  virtual void Withdraw(const TransferId& transfer_id) = 0;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_KV_BACKEND_H_
