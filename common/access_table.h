#ifndef BATON_COMMON_ACCESS_TABLE_H_
#define BATON_COMMON_ACCESS_TABLE_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "common/caller.h"

namespace baton {

// Whose port a call came to.
enum class PortRole { kRouter, kPrefill, kDecode };

// Whether `caller` may call `method` ("/baton.v1.Inference/Generate") on such a port: the one table of who
// may call what. What is not in the table is nobody's. UNAUTHENTICATED for a caller who is nobody, where that
// matters; PERMISSION_DENIED for one who is somebody else.
absl::Status CheckAccess(PortRole port, std::string_view method, const std::optional<CallerIdentity>& caller);

}  // namespace baton

#endif  // BATON_COMMON_ACCESS_TABLE_H_
