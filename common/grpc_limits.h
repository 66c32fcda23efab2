#ifndef BATON_COMMON_GRPC_LIMITS_H_
#define BATON_COMMON_GRPC_LIMITS_H_

// What servers and channels agree on.
namespace baton {

// Of any message in either direction. KV bytes travel in pieces far below it.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Of all headers of a call together, or all trailers; more ends the call with RESOURCE_EXHAUSTED.
// grpc_status.h keeps errors within it.
inline constexpr int kMaxMetadataBytes = 8 << 10;

// Calls that run at once on one connection; a peer holds back more. Routers have several connections to each
// worker.
inline constexpr int kMaxStreamsPerConnection = 1024;

// Both ends ping after this long without a byte from the peer and close the connection when the answer takes
// longer than the timeout: a silent peer is noticed within 3 s, the sum and some slack. Between Baton's
// processes they do so with or without calls; a public port pings its clients while they have calls.
inline constexpr int kKeepaliveTimeMs = 1000;
inline constexpr int kKeepaliveTimeoutMs = 1500;

// A server takes pings more frequent than this for an attack; well below kKeepaliveTimeMs.
inline constexpr int kMinPingIntervalMs = 300;

}  // namespace baton

#endif  // BATON_COMMON_GRPC_LIMITS_H_
