#include "common/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/error_details.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(GrpcStatus, OkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(GrpcStatus, EveryCodeGoesThroughAndUnknownBecomesInternal) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "text");
    const int expected = code == grpc::StatusCode::UNKNOWN ? grpc::StatusCode::INTERNAL : code;
    EXPECT_EQ(ToGrpcStatus(status).error_code(), expected);
    EXPECT_EQ(ToGrpcStatus(status).error_message(), "text");
    EXPECT_EQ(ToGrpcStatus(status).error_details(), "");
    const grpc::Status peer(static_cast<grpc::StatusCode>(code), "text");
    EXPECT_EQ(static_cast<int>(FromGrpcStatus(peer).code()), expected);
    EXPECT_EQ(FromGrpcStatus(peer).message(), "text");
  }
  for (const int code : {17, 31, -1}) {
    EXPECT_EQ(ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "")).error_code(),
              grpc::StatusCode::INTERNAL);
    EXPECT_EQ(FromGrpcStatus(grpc::Status(static_cast<grpc::StatusCode>(code), "")).code(),
              absl::StatusCode::kInternal);
  }
}

TEST(GrpcStatus, DetailsGoThroughAsGoogleRpcStatus) {
  absl::Status status = WithErrorInfo(absl::UnavailableError("lost"), "WORKER_LOST");
  status = WithRetryInfo(status, absl::Seconds(2));
  status = WithFieldViolation(status, "field", "description");
  const grpc::Status sent = ToGrpcStatus(status);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  EXPECT_EQ(details.code(), 14);
  EXPECT_EQ(details.message(), "lost");
  EXPECT_EQ(details.details_size(), 3);
  EXPECT_EQ(FromGrpcStatus(sent), status);
}

TEST(GrpcStatus, DamagedDetailsAreLeftOut) {
  const absl::Status status = FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "text", "\xff\xff\xff"));
  EXPECT_EQ(status, absl::AbortedError("text"));
}

TEST(GrpcStatus, LongTextsAndDetailsAreCut) {
  std::string text = "x";
  while (text.size() < 5000) text += "\xe2\x82\xac";
  absl::Status status = WithErrorInfo(absl::InternalError(text), "SMALL");
  status = WithFieldViolation(status, "field", std::string(100'000, 'd'));
  const grpc::Status sent = ToGrpcStatus(status);
  EXPECT_EQ(sent.error_message(), text.substr(0, 1 + 3 * 341));
  EXPECT_LE(sent.error_details().size(), 3072u);
  EXPECT_EQ(ErrorReason(FromGrpcStatus(sent)), "SMALL");
  EXPECT_TRUE(GetFieldViolations(FromGrpcStatus(sent)).empty());
}

TEST(GrpcStatus, InvalidUtf8IsReplaced) {
  EXPECT_EQ(ToGrpcStatus(absl::InternalError("a\xff")).error_message(), "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace baton
