#ifndef BATON_COMMON_PROTOCOL_VERSION_H_
#define BATON_COMMON_PROTOCOL_VERSION_H_

#include <cstdint>

namespace baton {

// The protocol between router, prefill and decode: legs, landings and the KV wire format. A process speaks
// every version from the oldest to the newest and says so in GetServerInfo.
inline constexpr uint32_t kOldestProtocolVersion = 1;
inline constexpr uint32_t kProtocolVersion = 1;

}  // namespace baton

#endif  // BATON_COMMON_PROTOCOL_VERSION_H_
