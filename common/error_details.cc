#include "common/error_details.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/string_views.h"
#include "common/utf8.h"
#include "google/rpc/error_details.pb.h"

namespace baton {
namespace {

constexpr std::string_view kTypeUrlPrefix = "type.googleapis.com/";
constexpr absl::Duration kLongestRetryDelay = absl::Hours(24);

template <typename Message>
std::string TypeUrl() {
  return absl::StrCat(AbslView(kTypeUrlPrefix), Message::descriptor()->full_name());
}

template <typename Message>
std::optional<Message> Get(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(TypeUrl<Message>());
  Message message;
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) return std::nullopt;
  return message;
}

template <typename Message>
absl::Status With(absl::Status status, const Message& message) {
  status.SetPayload(TypeUrl<Message>(), absl::Cord(message.SerializeAsString()));
  return status;
}

}  // namespace

absl::Status WithErrorInfo(const absl::Status& status, std::string_view reason,
                           const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(ReplaceInvalidUtf8(reason));
  info.set_domain(std::string(kErrorDomain));
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[ReplaceInvalidUtf8(key)] = ReplaceInvalidUtf8(value);
  }
  return With(status, info);
}

std::optional<ErrorInfo> GetErrorInfo(const absl::Status& status) {
  const std::optional<google::rpc::ErrorInfo> info = Get<google::rpc::ErrorInfo>(status);
  if (!info.has_value()) return std::nullopt;
  return ErrorInfo{info->reason(), info->domain(), {info->metadata().begin(), info->metadata().end()}};
}

std::string ErrorReason(const absl::Status& status) {
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  return info.has_value() && info->domain == kErrorDomain ? info->reason : "";
}

absl::Status WithRetryInfo(const absl::Status& status, absl::Duration delay) {
  const int64_t nanos = absl::ToInt64Nanoseconds(std::clamp(delay, absl::ZeroDuration(), kLongestRetryDelay));
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(nanos / kNanosPerSecond);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanos % kNanosPerSecond));
  return With(status, info);
}

std::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const std::optional<google::rpc::RetryInfo> info = Get<google::rpc::RetryInfo>(status);
  if (!info.has_value()) return std::nullopt;
  const absl::Duration delay =
      absl::Seconds(info->retry_delay().seconds()) + absl::Nanoseconds(info->retry_delay().nanos());
  return std::clamp(delay, absl::ZeroDuration(), kLongestRetryDelay);
}

absl::Status WithFieldViolation(const absl::Status& status, std::string_view field,
                                std::string_view description) {
  google::rpc::BadRequest request = Get<google::rpc::BadRequest>(status).value_or(google::rpc::BadRequest());
  google::rpc::BadRequest::FieldViolation* violation = request.add_field_violations();
  violation->set_field(ReplaceInvalidUtf8(field));
  violation->set_description(ReplaceInvalidUtf8(description));
  return With(status, request);
}

std::vector<FieldViolation> GetFieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const std::optional<google::rpc::BadRequest> request = Get<google::rpc::BadRequest>(status);
  if (!request.has_value()) return violations;
  for (const auto& violation : request->field_violations()) {
    violations.push_back({violation.field(), violation.description()});
  }
  return violations;
}

absl::Status InvalidField(std::string_view field, std::string_view description) {
  return WithFieldViolation(absl::InvalidArgumentError(ReplaceInvalidUtf8(
                                absl::StrCat(AbslView(field), ": ", AbslView(description)))),
                            field, description);
}

}  // namespace baton
