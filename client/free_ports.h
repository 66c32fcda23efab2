#ifndef BATON_CLIENT_FREE_PORTS_H_
#define BATON_CLIENT_FREE_PORTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace baton {

// `count` different TCP ports of loopback on which nobody listened a moment ago.
absl::StatusOr<std::vector<uint16_t>> FreePorts(size_t count);

// Whether nobody listens on this port of loopback.
bool IsFreePort(uint16_t port);

}  // namespace baton

#endif  // BATON_CLIENT_FREE_PORTS_H_
