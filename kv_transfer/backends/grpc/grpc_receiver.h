#ifndef BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_RECEIVER_H_
#define BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_RECEIVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/transfer_id.h"
#include "engine/device/device.h"
#include "kv_transfer/backends/grpc/piece_hash.h"
#include "kv_transfer/backends/grpc/span_cursor.h"
#include "kv_transfer/kv_backend.h"

namespace baton {

// Writes the bytes of LandData messages where they belong and compares checksums. Thread-safe. Every piece
// has ended before it is destroyed.
class GrpcReceiver final : public KvReceiveBackend {
 public:
  explicit GrpcReceiver(Device* device) : device_(device) {}
  ~GrpcReceiver() override;

  void Receive(PieceBuffer destination, PieceDone visible) override;
  void Deliver(const TransferId& transfer_id, uint32_t piece_id, uint64_t offset, std::string bytes,
               std::optional<uint64_t> checksum) override;
  void Withdraw(const TransferId& transfer_id) override;

 private:
  struct Incoming {
    Incoming(PieceBuffer destination, PieceDone done)
        : bytes(destination.bytes), cursor(std::move(destination.spans)), visible(std::move(done)) {}

    const uint64_t bytes;
    SpanCursor cursor;
    PieceHash hash;
    uint64_t offset = 0;
    PieceDone visible;
  };

  // Writes into the piece; its status once the piece has ended.
  std::optional<absl::Status> Write(Incoming* piece, uint64_t offset, const std::string& bytes,
                                    std::optional<uint64_t> checksum);

  Device* const device_;

  Mutex mutex_;  // also held while bytes are written, so that a withdrawn piece is not written any more
  std::map<std::pair<TransferId, uint32_t>, std::unique_ptr<Incoming>> incoming_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_RECEIVER_H_
