#include "common/error_details.h"

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

const absl::Status kError = absl::UnavailableError("no worker");

TEST(ErrorDetails, ErrorInfoGoesThrough) {
  const absl::Status status = WithErrorInfo(kError, "WORKER_LOST", {{"worker", "a"}, {"phase", "decode"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "no worker");
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason, "WORKER_LOST");
  EXPECT_EQ(info->domain, "baton");
  EXPECT_EQ(info->metadata, (std::map<std::string, std::string>{{"worker", "a"}, {"phase", "decode"}}));
  EXPECT_EQ(ErrorReason(status), "WORKER_LOST");
  EXPECT_EQ(ErrorReason(WithErrorInfo(status, "OTHER")), "OTHER");
}

TEST(ErrorDetails, TypeUrlsAndBytesAreThoseOfGoogleRpc) {
  // Written by hand from the published field numbers: reason = 1, domain = 2; retry_delay = 1 {seconds = 1,
  // nanos = 2}; field_violations = 1 {field = 1, description = 2}.
  absl::Status status = WithErrorInfo(kError, "R");
  status = WithRetryInfo(status, absl::Milliseconds(2500));
  status = WithFieldViolation(status, "f", "d");
  EXPECT_EQ(status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo"), absl::Cord("\x0a\x01R\x12\x05"
                                                                                      "baton"));
  EXPECT_EQ(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo"),
            absl::Cord("\x0a\x08\x08\x02\x10\x80\xca\xb5\xee\x01"));
  EXPECT_EQ(status.GetPayload("type.googleapis.com/google.rpc.BadRequest"), absl::Cord("\x0a\x06\x0a\x01"
                                                                                       "f\x12\x01"
                                                                                       "d"));
}

TEST(ErrorDetails, RetryDelayIsBounded) {
  EXPECT_EQ(GetRetryDelay(WithRetryInfo(kError, absl::Milliseconds(1500))), absl::Milliseconds(1500));
  EXPECT_EQ(GetRetryDelay(WithRetryInfo(kError, absl::Nanoseconds(1))), absl::Nanoseconds(1));
  EXPECT_EQ(GetRetryDelay(WithRetryInfo(kError, -absl::Seconds(1))), absl::ZeroDuration());
  EXPECT_EQ(GetRetryDelay(WithRetryInfo(kError, absl::InfiniteDuration())), absl::Hours(24));
  absl::Status crafted = kError;
  crafted.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                     absl::Cord("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
  EXPECT_EQ(GetRetryDelay(crafted), absl::Hours(24));
}

TEST(ErrorDetails, FieldViolationsAddUp) {
  const absl::Status status =
      WithFieldViolation(InvalidField("sampling.top_p", "2 is above 1"), "model", "empty");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "sampling.top_p: 2 is above 1");
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "sampling.top_p");
  EXPECT_EQ(violations[0].description, "2 is above 1");
  EXPECT_EQ(violations[1].field, "model");
}

TEST(ErrorDetails, AbsentAndDamagedDetailsReadAsNone) {
  absl::Status status = kError;
  status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo", absl::Cord("\xff\xff"));
  for (const absl::Status& s : {kError, status, absl::OkStatus()}) {
    EXPECT_FALSE(GetErrorInfo(s).has_value());
    EXPECT_FALSE(GetRetryDelay(s).has_value());
    EXPECT_TRUE(GetFieldViolations(s).empty());
    EXPECT_EQ(ErrorReason(s), "");
  }
}

TEST(ErrorDetails, OkStaysOk) {
  EXPECT_EQ(WithErrorInfo(absl::OkStatus(), "R"), absl::OkStatus());
  EXPECT_EQ(WithRetryInfo(absl::OkStatus(), absl::Seconds(1)), absl::OkStatus());
}

TEST(ErrorDetails, InvalidUtf8IsReplaced) {
  const absl::Status status = InvalidField("prompt", "byte \xff");
  EXPECT_EQ(status.message(), "prompt: byte \xef\xbf\xbd");
  ASSERT_EQ(GetFieldViolations(status).size(), 1u);
  EXPECT_EQ(GetFieldViolations(status)[0].description, "byte \xef\xbf\xbd");
}

}  // namespace
}  // namespace baton
