#include "router/retry_table.h"

#include "common/error_details.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(RetryTable, SaysForEveryCodeWhatBecomesOfTheRequest) {
  const std::pair<absl::StatusCode, AfterLeg> table[] = {
      {absl::StatusCode::kResourceExhausted, AfterLeg::kRequeue},
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
  for (const auto& [code, after] : table) EXPECT_EQ(Classify(absl::Status(code, "")), after) << code;
}

TEST(RetryTable, DrainingIsNoLossAndAFailedHandoffIsThePairs) {
  EXPECT_EQ(Classify(WithErrorInfo(absl::UnavailableError(""), "DRAINING")), AfterLeg::kRequeue);
  const absl::Status handoff = WithErrorInfo(absl::NotFoundError(""), "HANDOFF_FAILED");
  EXPECT_EQ(Classify(handoff), AfterLeg::kRetry);
  EXPECT_TRUE(BlamesPair(handoff));
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
