#ifndef BATON_ROUTER_RETRY_TABLE_H_
#define BATON_ROUTER_RETRY_TABLE_H_

#include "absl/status/status.h"

namespace baton {

// What becomes of a request whose leg ended with a status.
enum class AfterLeg {
  kRequeue,  // the worker refused for want of room or because it drains: another pair, not counted as a loss
  kRetry,    // the worker, or the way between two of them, was lost: another attempt, counted
  kEnd,      // the request itself is at fault, or a bug is: the client hears of it
};

// The one table of it. `status` is not OK.
AfterLeg Classify(const absl::Status& status);

// Whether the status blames the way between the pair's two workers rather than the worker that reported it.
bool BlamesPair(const absl::Status& status);

// What a client may see of a leg's status: never an address, a path or a peer's name.
absl::Status ForClient(const absl::Status& status);

}  // namespace baton

#endif  // BATON_ROUTER_RETRY_TABLE_H_
