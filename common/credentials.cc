#include "common/credentials.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton {

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const HostPort& listen,
                                                                               bool allow_plaintext) {
  if (!listen.IsLoopback() && !allow_plaintext) {
    return absl::FailedPreconditionError(absl::StrCat(
        "listen: \"", listen.ToString(),
        "\" can be reached from other machines and the connection is not encrypted; listen on loopback or "
        "give --allow-plaintext"));
  }
  return grpc::InsecureServerCredentials();
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials() {
  return grpc::InsecureChannelCredentials();
}

}  // namespace baton
