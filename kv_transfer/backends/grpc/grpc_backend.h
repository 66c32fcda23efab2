#ifndef BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_BACKEND_H_
#define BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_BACKEND_H_

#include "kv_transfer/kv_backend_registry.h"

namespace baton {

// Bytes of one LandData message at most.
inline constexpr uint64_t kLandDataBytes = 1 << 20;

// Moves KV as LandData messages on the transfer's Land stream: one message on its way per transfer, pieces in
// the order of their takes, an XXH3-64 checksum over each. Needs nothing of the network that control does not
// need.
KvBackendKind GrpcBackend();

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_GRPC_GRPC_BACKEND_H_
