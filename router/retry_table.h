#ifndef BATON_ROUTER_RETRY_TABLE_H_
#define BATON_ROUTER_RETRY_TABLE_H_

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace baton {

// What becomes of a request whose leg ended with a status.
enum class AfterLeg {
  kMove,   // nothing was lost by a fault: another attempt, not counted against the request
  kRetry,  // the worker, or the way between two of them, was lost: another attempt, counted
  kEnd,    // the request itself is at fault, or a bug is: the client hears of it
};

// Who is avoided afterwards.
enum class Blame {
  kNobody,
  kRoom,      // this worker is passed over once
  kDraining,  // this worker takes nothing new, as it will say itself
  kWorker,    // this worker is suspect
  kPair,      // the way between the two workers is
};

struct RetryRow {
  absl::StatusCode code;
  std::string_view reason;  // of its ErrorInfo; empty: any other
  AfterLeg after;
  Blame blame;
  std::string_view word;  // in metrics and logs
};

// Reasons that the router itself gives to a leg that it gives up.
inline constexpr std::string_view kReasonSilent = "SILENT";        // nothing was heard
inline constexpr std::string_view kReasonStalled = "STALLED";      // the worker speaks and gets nowhere
inline constexpr std::string_view kReasonRestarted = "RESTARTED";  // another process is at its address

// The one table of it: the first row that fits. `status` is not OK.
const RetryRow& AfterLegEnded(const absl::Status& status);
// The words that a counted recovery may have.
std::span<const RetryRow> RetryRows();

// What a client may see of a leg's status: never an address, a path or a peer's name.
absl::Status ForClient(const absl::Status& status);

}  // namespace baton

#endif  // BATON_ROUTER_RETRY_TABLE_H_
