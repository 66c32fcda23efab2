#ifndef BATON_COMMON_GRPC_STATUS_H_
#define BATON_COMMON_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

// The one place where Baton's statuses and gRPC's meet. Payloads of error_details.h travel as
// google.rpc.Status in the trailer grpc-status-details-bin.
namespace baton {

// For what a service answers. UNKNOWN and codes outside the published ones become INTERNAL. A text or details
// too long for the trailers that every peer accepts are cut: the text at a code point, the details whole ones
// at a time.
grpc::Status ToGrpcStatus(const absl::Status& status);

// For what a call came back with; never UNKNOWN. Details that do not parse are left out. A text made by the
// gRPC library names the peer's address, so a service words its own before passing such a status on to a
// client.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace baton

#endif  // BATON_COMMON_GRPC_STATUS_H_
