#ifndef BATON_COMMON_STATUS_MACROS_H_
#define BATON_COMMON_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the calling function when `expression`, an absl::Status, is not OK.
#define RETURN_IF_ERROR(expression)                                     \
  do {                                                                  \
    if (absl::Status baton_status = (expression); !baton_status.ok()) { \
      return baton_status;                                              \
    }                                                                   \
  } while (false)

#define BATON_CONCAT_INNER(a, b) a##b
#define BATON_CONCAT(a, b) BATON_CONCAT_INNER(a, b)

// ASSIGN_OR_RETURN(auto value, F()): declares or assigns `value` from an absl::StatusOr, or returns its
// status.
#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_INNER(BATON_CONCAT(baton_statusor_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_INNER(statusor, lhs, expression) \
  auto statusor = (expression);                           \
  if (!statusor.ok()) {                                   \
    return std::move(statusor).status();                  \
  }                                                       \
  lhs = *std::move(statusor)

#endif  // BATON_COMMON_STATUS_MACROS_H_
