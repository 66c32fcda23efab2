#ifndef BATON_KV_TRANSFER_LAND_DATA_WRITER_H_
#define BATON_KV_TRANSFER_LAND_DATA_WRITER_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/transfer_id.h"

namespace baton {

// The way onto a transfer's Land stream for backends whose bytes travel there. Thread-safe.
class LandDataWriter {
 public:
  // Called exactly once, on any thread: OK, never inside WriteData, when the stream has taken the message and
  // the next may follow; an error, also inside WriteData, when it never will.
  using Written = absl::AnyInvocable<void(absl::Status) &&>;

  virtual ~LandDataWriter() = default;
  // Messages of one transfer arrive in the order of the calls, between those of its protocol. UNAVAILABLE
  // when its stream is not open.
  virtual void WriteData(const TransferId& transfer_id, v1::LandData data, Written written) = 0;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_LAND_DATA_WRITER_H_
