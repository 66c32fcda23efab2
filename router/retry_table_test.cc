#include "router/retry_table.h"

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(RetryTable, SaysForEveryCodeWhatBecomesOfTheRequest) {
  const std::pair<absl::StatusCode, AfterLeg> table[] = {
      {absl::StatusCode::kResourceExhausted, AfterLeg::kMove},
      {absl::StatusCode::kUnavailable, AfterLeg::kRetry},
      {absl::StatusCode::kDataLoss, AfterLeg::kRetry},
      {absl::StatusCode::kDeadlineExceeded, AfterLeg::kRetry},
      {absl::StatusCode::kCancelled, AfterLeg::kRetry},
      {absl::StatusCode::kAborted, AfterLeg::kRetry},
      {absl::StatusCode::kAlreadyExists, AfterLeg::kRetry},
      {absl::StatusCode::kInvalidArgument, AfterLeg::kEnd},
      {absl::StatusCode::kFailedPrecondition, AfterLeg::kEnd},
      {absl::StatusCode::kInternal, AfterLeg::kEnd},
      {absl::StatusCode::kNotFound, AfterLeg::kEnd},
      {absl::StatusCode::kUnimplemented, AfterLeg::kEnd},
  };
  for (const auto& [code, after] : table)
    EXPECT_EQ(AfterLegEnded(absl::Status(code, "")).after, after) << code;
}

TEST(RetryTable, AReasonSaysMoreThanTheCode) {
  const RetryRow& drained = AfterLegEnded(WithErrorInfo(absl::UnavailableError(""), kReasonDraining));
  EXPECT_EQ(drained.after, AfterLeg::kMove);
  EXPECT_EQ(drained.blame, Blame::kDraining);
  const RetryRow& handoff = AfterLegEnded(WithErrorInfo(absl::NotFoundError(""), kReasonHandoffFailed));
  EXPECT_EQ(handoff.after, AfterLeg::kRetry);
  EXPECT_EQ(handoff.blame, Blame::kPair);
  EXPECT_EQ(AfterLegEnded(WithErrorInfo(absl::UnavailableError(""), kReasonStalled)).word, "stalled");
  EXPECT_EQ(AfterLegEnded(absl::UnavailableError("")).word, "worker_lost");
}

TEST(RetryTable, EveryRowCanBeReached) {
  for (const RetryRow& row : RetryRows()) {
    absl::Status status(row.code, "");
    if (!row.reason.empty()) status = WithErrorInfo(status, row.reason);
    EXPECT_EQ(&AfterLegEnded(status), &row) << row.code << " " << row.reason;
  }
}

TEST(RetryTable, ClientsSeeNoAddress) {
  const absl::Status lost = ForClient(absl::UnavailableError("failed to connect to ipv4:10.1.2.3:7610"));
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(lost), "WORKER_LOST");
  EXPECT_EQ(lost.message().find("10.1.2.3"), absl::string_view::npos);
  const absl::Status bug = ForClient(absl::InternalError("at 0x7f00 in /usr/lib"));
  EXPECT_EQ(bug.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(bug.message().find("/usr"), absl::string_view::npos);
}

}  // namespace
}  // namespace baton
