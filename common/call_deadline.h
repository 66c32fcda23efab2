#ifndef BATON_COMMON_CALL_DEADLINE_H_
#define BATON_COMMON_CALL_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"
#include "common/clock.h"
#include "grpcpp/server_context.h"

namespace baton {

// When a call's time is up, on `clock`. Calls come with remaining time; one without gets `longest`, and none
// gets more.
inline absl::Time CallDeadline(const grpc::ServerContextBase& context, const Clock& clock,
                               absl::Duration longest) {
  const absl::Time now = clock.Now();
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return now + longest;
  return now + std::min(absl::FromChrono(deadline - std::chrono::system_clock::now()), longest);
}

}  // namespace baton

#endif  // BATON_COMMON_CALL_DEADLINE_H_
