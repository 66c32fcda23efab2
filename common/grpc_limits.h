#ifndef BATON_COMMON_GRPC_LIMITS_H_
#define BATON_COMMON_GRPC_LIMITS_H_

// What servers and channels agree on.
namespace baton {

// Of any message in either direction. KV bytes travel in pieces far below it.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Both ends ping after this long without a byte from the peer, with or without calls, and close the
// connection when the answer takes longer than the timeout: a silent peer is noticed within 3 s, the sum and
// some slack.
inline constexpr int kKeepaliveTimeMs = 1000;
inline constexpr int kKeepaliveTimeoutMs = 1500;

// A server takes pings more frequent than this for an attack; well below kKeepaliveTimeMs.
inline constexpr int kMinPingIntervalMs = 300;

}  // namespace baton

#endif  // BATON_COMMON_GRPC_LIMITS_H_
