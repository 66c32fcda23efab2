#ifndef BATON_COMMON_ERROR_DETAILS_H_
#define BATON_COMMON_ERROR_DETAILS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

// google.rpc details carried by an absl::Status as payloads, under the type URLs by which gRPC clients know
// them. Writers return a copy of `status` with the detail added; an OK status carries none and is returned as
// it is. Readers skip a payload that does not parse. Invalid UTF-8 becomes U+FFFD.
namespace baton {

// The domain of every reason below.
inline constexpr std::string_view kErrorDomain = "baton";

struct ErrorInfo {
  std::string reason;  // UPPER_SNAKE_CASE, as in "WORKER_LOST".
  std::string domain;
  std::map<std::string, std::string> metadata;
};

struct FieldViolation {
  std::string field;        // A path in the request, as in "sampling.top_p".
  std::string description;  // Names the value and the limit.
};

// The cause for programs. Replaces an earlier one.
absl::Status WithErrorInfo(const absl::Status& status, std::string_view reason,
                           const std::map<std::string, std::string>& metadata = {});
std::optional<ErrorInfo> GetErrorInfo(const absl::Status& status);
// The reason within kErrorDomain; empty without one.
std::string ErrorReason(const absl::Status& status);

// When to try again; negative delays count as zero, those beyond a day as a day. Replaces an earlier one.
absl::Status WithRetryInfo(const absl::Status& status, absl::Duration delay);
std::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

// Adds to those already there.
absl::Status WithFieldViolation(const absl::Status& status, std::string_view field,
                                std::string_view description);
std::vector<FieldViolation> GetFieldViolations(const absl::Status& status);

// INVALID_ARGUMENT whose text is "<field>: <description>", with the violation attached.
absl::Status InvalidField(std::string_view field, std::string_view description);

}  // namespace baton

#endif  // BATON_COMMON_ERROR_DETAILS_H_
