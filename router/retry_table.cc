#include "router/retry_table.h"

#include "common/error_details.h"
#include "common/error_reasons.h"

namespace baton {
namespace {

using Code = absl::StatusCode;

constexpr RetryRow kRows[] = {
    {Code::kUnavailable, kReasonDraining, AfterLeg::kMove, Blame::kDraining, "draining"},
    {Code::kUnavailable, kReasonWrongInstance, AfterLeg::kMove, Blame::kWorker, "restarted"},
    {Code::kUnavailable, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
    {Code::kUnavailable, kReasonRestarted, AfterLeg::kRetry, Blame::kWorker, "restarted"},
    {Code::kUnavailable, kReasonSilent, AfterLeg::kRetry, Blame::kWorker, "silent"},
    {Code::kUnavailable, kReasonStalled, AfterLeg::kRetry, Blame::kWorker, "stalled"},
    {Code::kUnavailable, "", AfterLeg::kRetry, Blame::kWorker, "worker_lost"},
    {Code::kResourceExhausted, kReasonSlowReader, AfterLeg::kRetry, Blame::kNobody, "slow_reader"},
    {Code::kResourceExhausted, "", AfterLeg::kMove, Blame::kRoom, "no_room"},
    // A checksum.
    {Code::kDataLoss, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "checksum"},
    {Code::kDataLoss, "", AfterLeg::kRetry, Blame::kWorker, "checksum"},
    // The leg's own: the call's deadline has its own timer.
    {Code::kDeadlineExceeded, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
    {Code::kDeadlineExceeded, "", AfterLeg::kRetry, Blame::kWorker, "worker_lost"},
    // Not by this router, which forgets the legs that it cancels.
    {Code::kCancelled, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
    {Code::kCancelled, "", AfterLeg::kRetry, Blame::kWorker, "worker_lost"},
    {Code::kAborted, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
    {Code::kAborted, "", AfterLeg::kRetry, Blame::kWorker, "worker_lost"},
    {Code::kAlreadyExists, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
    {Code::kAlreadyExists, "", AfterLeg::kRetry, Blame::kWorker, "worker_lost"},
    // A landing that is gone, or that is not this peer's.
    {Code::kNotFound, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
    {Code::kPermissionDenied, kReasonHandoffFailed, AfterLeg::kRetry, Blame::kPair, "handoff"},
};

constexpr RetryRow kEnds = {Code::kUnknown, "", AfterLeg::kEnd, Blame::kNobody, "ended"};

}  // namespace

const RetryRow& AfterLegEnded(const absl::Status& status) {
  const std::string reason = ErrorReason(status);
  for (const RetryRow& row : kRows) {
    if (row.code == status.code() && (row.reason.empty() || row.reason == reason)) return row;
  }
  return kEnds;
}

std::span<const RetryRow> RetryRows() { return kRows; }

absl::Status ForClient(const absl::Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kResourceExhausted:
    case Code::kFailedPrecondition:
      return status;
    case Code::kDeadlineExceeded:
      return absl::DeadlineExceededError("the request's time is up");
    default:
      return AfterLegEnded(status).after == AfterLeg::kEnd
                 ? absl::InternalError("a worker failed on this request")
                 : WithErrorInfo(absl::UnavailableError("workers were lost while computing this request"),
                                 "WORKER_LOST");
  }
}

}  // namespace baton
