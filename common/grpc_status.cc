#include "common/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/string_views.h"
#include "common/utf8.h"
#include "google/rpc/status.pb.h"

namespace baton {
namespace {

// gRPC peers refuse more than 8 KiB of trailers. The text goes percent-encoded (up to 3 bytes for one), the
// details as base64.
constexpr size_t kMaxTextBytes = 1024;
constexpr size_t kMaxDetailsBytes = 3072;

// absl::Status::code() has already folded everything outside the published codes into kUnknown.
absl::StatusCode NeverUnknown(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown ? absl::StatusCode::kInternal : code;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const int code = static_cast<int>(NeverUnknown(status.code()));
  const std::string valid = ReplaceInvalidUtf8(StdView(status.message()));
  const std::string text(TruncateUtf8(valid, kMaxTextBytes));
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(text);
  status.ForEachPayload([&details](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any* any = details.add_details();
    any->set_type_url(ReplaceInvalidUtf8(StdView(type_url)));
    any->set_value(std::string(payload));
    if (details.ByteSizeLong() > kMaxDetailsBytes) details.mutable_details()->RemoveLast();
  });
  const std::string serialized = details.details().empty() ? "" : details.SerializeAsString();
  return grpc::Status(static_cast<grpc::StatusCode>(code), text, serialized);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // Through absl::Status, which knows the published codes.
  const absl::Status raw(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  absl::Status result(NeverUnknown(raw.code()), raw.message());
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      result.SetPayload(any.type_url(), absl::Cord(any.value()));
    }
  }
  return result;
}

}  // namespace baton
