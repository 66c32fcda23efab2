#ifndef BATON_KV_TRANSFER_BACKENDS_INPROC_INPROC_BACKEND_H_
#define BATON_KV_TRANSFER_BACKENDS_INPROC_INPROC_BACKEND_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/transfer_id.h"
#include "engine/device/device.h"
#include "kv_transfer/kv_backend.h"
#include "kv_transfer/kv_backend_registry.h"

namespace baton {

// Where senders and receivers of one process meet: the destinations that wait for their bytes. Owned by main,
// outlives every backend made on it. Thread-safe.
class InprocRendezvous {
 public:
  struct Destination {
    Device* device = nullptr;
    PieceBuffer buffer;
    PieceDone visible;
  };

  // Ends `destination` with ALREADY_EXISTS when its piece waits here already.
  void Post(Destination destination) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a destination out: from then on it is the caller's to end. Null when there is none.
  std::unique_ptr<Destination> Take(const TransferId& transfer_id, uint32_t piece_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every destination of the transfer that still waits.
  void Withdraw(const TransferId& transfer_id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  std::map<std::pair<TransferId, uint32_t>, std::unique_ptr<Destination>> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Moves KV between two workers of one process, from memory to memory, inside Move. Never corrupts, so it
// carries no checksum.
KvBackendKind InprocBackend(InprocRendezvous* rendezvous);

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_INPROC_INPROC_BACKEND_H_
