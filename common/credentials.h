#ifndef BATON_COMMON_CREDENTIALS_H_
#define BATON_COMMON_CREDENTIALS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/access_table.h"
#include "common/caller.h"
#include "common/clock.h"
#include "common/host_port.h"
#include "common/metrics.h"
#include "common/option.h"
#include "common/tls_files.h"
#include "common/token_file.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"

namespace grpc::experimental {
class CertificateProviderInterface;
}

namespace baton {

struct CredentialOptions {
  TlsFiles tls;
  std::string identity_prefix = "spiffe://baton.local/";  // of certificates: see caller.h
  std::string token_file;                                 // empty: no bearer tokens are taken
  absl::Duration reload_interval = absl::Seconds(10);     // of every file
};

// The options of a server that are about this; `tokens`: also those of a port that clients call.
std::vector<Option> DescribeCredentials(CredentialOptions* options, bool tokens);

// What a process shows of itself, and whom it believes: the one place where credentials are made, for servers
// and for channels. Certificates and tokens are read again when their files change; connections that stand
// keep what they were made with. Thread-safe. Made by main, shared by what uses it.
class Credentials {
 public:
  // INVALID_ARGUMENT naming the option: see CheckTlsFiles and TokenTable. `clock` outlives it.
  static absl::StatusOr<std::shared_ptr<const Credentials>> Create(const CredentialOptions& options,
                                                                   const Clock* clock);

  bool has_tls() const { return provider_ != nullptr; }

  // A server's, whose calls are all held against the access table, unless it speaks plaintext and takes no
  // tokens: then anybody may do anything. FAILED_PRECONDITION where plaintext could be reached from other
  // machines without `allow_plaintext`, the operator's explicit word, or would carry tokens there.
  // On a router's port a caller without certificate may show a token; workers end connections without a
  // certificate before the first call. Refused calls count as baton_requests_total; `metrics` may be null.
  static absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ForServer(
      std::shared_ptr<const Credentials> self, const HostPort& listen, PortRole port, bool allow_plaintext,
      Metrics* metrics);

  // A channel's to a service of this deployment. With TLS, the peer's certificate must have that role; and
  // that identity, unless it is empty. Its name in DNS does not matter.
  std::shared_ptr<grpc::ChannelCredentials> ForPeer(CallerRole role, const std::string& identity = "") const;

  // Who makes this call; UNAUTHENTICATED for a token that is not known. Nothing when there is neither token
  // nor certificate.
  absl::StatusOr<std::optional<CallerIdentity>> Identify(
      const grpc::AuthContext& peer, const grpc::AuthMetadataProcessor::InputMetadata& metadata) const;

  // Who makes a call that has passed the access table.
  CallerIdentity CallerOf(const grpc::ServerContextBase& context) const;

 private:
  Credentials(const CredentialOptions& options, std::unique_ptr<TokenFile> tokens);

  const std::string identity_prefix_;
  const std::unique_ptr<TokenFile> tokens_;                                     // null: none are taken
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;  // null: no TLS
};

// Whose requests are counted together: the caller's name, where the credentials know one, or else what the
// call says in its metadata `x-tenant`, or else "". `credentials` may be null: a plaintext port.
std::string TenantOf(const Credentials* credentials, const grpc::ServerContextBase& context);

// Whose streams are counted together: the caller's name or, without one, the address that the call came from.
std::string ClientKey(const Credentials* credentials, const grpc::ServerContextBase& context);

// A client's channel to a router. With `tls.ca` the router's certificate must be for the host that is
// dialled. `token_file` holds a bearer token, as its only word; it is never sent in plaintext to another
// machine: FAILED_PRECONDITION.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(const TlsFiles& tls,
                                                                            const std::string& token_file,
                                                                            const std::string& server);

}  // namespace baton

#endif  // BATON_COMMON_CREDENTIALS_H_
