#ifndef BATON_COMMON_CREDENTIALS_H_
#define BATON_COMMON_CREDENTIALS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/host_port.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

// The one place where credentials are made, for servers and for channels. Everything is plaintext, which is
// safe on loopback alone.
namespace baton {

// FAILED_PRECONDITION when `listen` can be reached from other machines and `allow_plaintext`, the operator's
// explicit word, is not given.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const HostPort& listen,
                                                                               bool allow_plaintext);

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials();

}  // namespace baton

#endif  // BATON_COMMON_CREDENTIALS_H_
