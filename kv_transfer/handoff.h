#ifndef BATON_KV_TRANSFER_HANDOFF_H_
#define BATON_KV_TRANSFER_HANDOFF_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/leg.pb.h"
#include "common/transfer_id.h"

namespace baton {

// What a prefill job asks of the transfer side when its prompt starts.
struct HandoffSpec {
  TransferId transfer_id;
  v1::Landing landing;
  uint32_t prompt_tokens = 0;
  absl::Time deadline;
};

// How a handoff ended.
struct HandoffResult {
  TransferId transfer_id;
  absl::Status status;
  uint64_t bytes = 0;
  absl::Duration
      handoff;            // with an OK status: last layer computed -> the decode worker's commit was received
  std::string transport;  // empty when none was agreed
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_HANDOFF_H_
