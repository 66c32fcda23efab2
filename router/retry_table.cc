#include "router/retry_table.h"

#include "common/error_details.h"

namespace baton {

AfterLeg Classify(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return AfterLeg::kRequeue;
    case absl::StatusCode::kUnavailable:
      return ErrorReason(status) == "DRAINING" ? AfterLeg::kRequeue : AfterLeg::kRetry;
    case absl::StatusCode::kDataLoss:          // a checksum
    case absl::StatusCode::kDeadlineExceeded:  // the leg's own: the call's deadline has its own timer
    case absl::StatusCode::kCancelled:         // not by this router, which forgets the legs that it cancels
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return AfterLeg::kRetry;
    case absl::StatusCode::kNotFound:  // a landing that is gone
    case absl::StatusCode::kPermissionDenied:
      return BlamesPair(status) ? AfterLeg::kRetry : AfterLeg::kEnd;
    default:
      return AfterLeg::kEnd;
  }
}

bool BlamesPair(const absl::Status& status) { return ErrorReason(status) == "HANDOFF_FAILED"; }

absl::Status ForClient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
      return status;
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError("the request's time is up");
    default:
      return Classify(status) == AfterLeg::kEnd
                 ? absl::InternalError("a worker failed on this request")
                 : WithErrorInfo(absl::UnavailableError("workers were lost while computing this request"),
                                 "WORKER_LOST");
  }
}

}  // namespace baton
