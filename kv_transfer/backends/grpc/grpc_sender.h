#ifndef BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_SENDER_H_
#define BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_SENDER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/transfer_id.h"
#include "engine/device/device.h"
#include "kv_transfer/backends/grpc/piece_hash.h"
#include "kv_transfer/backends/grpc/span_cursor.h"
#include "kv_transfer/kv_backend.h"
#include "kv_transfer/land_data_writer.h"

namespace baton {

// Cuts pieces into LandData messages. A transfer's pieces wait in a line; the first of them has one message
// on its way. Thread-safe. Every piece has ended before it is destroyed.
class GrpcSender final : public KvSendBackend {
 public:
  // Both outlive it.
  GrpcSender(Device* device, LandDataWriter* writer) : device_(device), writer_(writer) {}
  ~GrpcSender() override;

  void Move(PieceBuffer source, PieceDone moved) override;
  void Cancel(const TransferId& transfer_id) override;

 private:
  struct Outgoing {
    Outgoing(PieceBuffer source, PieceDone done)
        : piece_id(source.piece_id),
          bytes(source.bytes),
          cursor(std::move(source.spans)),
          moved(std::move(done)) {}

    const uint32_t piece_id;
    const uint64_t bytes;
    SpanCursor cursor;
    PieceHash hash;
    uint64_t offset = 0;
    PieceDone moved;
  };
  struct Line {
    std::deque<std::unique_ptr<Outgoing>> pieces;
    bool writing = false;    // a message of the first piece is on its way
    bool cancelled = false;  // that piece ends when the message does
  };

  // Sends the next message of a transfer that has none on its way. The piece is the caller's alone meanwhile.
  void Write(const TransferId& transfer_id, Outgoing* piece) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritten(const TransferId& transfer_id, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  Device* const device_;
  LandDataWriter* const writer_;

  Mutex mutex_;
  std::map<TransferId, Line> lines_ ABSL_GUARDED_BY(mutex_);  // none is empty
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_SENDER_H_
