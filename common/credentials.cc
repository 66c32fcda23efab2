#include "common/credentials.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "common/grpc_status.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace baton {
namespace {

namespace tls = grpc::experimental;
using InputMetadata = grpc::AuthMetadataProcessor::InputMetadata;

constexpr char kAuthorization[] = "authorization";
constexpr char kTenant[] = "x-tenant";
constexpr std::string_view kBearer = "Bearer ";
constexpr size_t kMaxTenantBytes = 128;
// How often a client looks at its files.
constexpr absl::Duration kClientReloadInterval = absl::Seconds(10);

std::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

std::string_view Value(const InputMetadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string_view() : View(found->second);
}

std::shared_ptr<tls::CertificateProviderInterface> Watch(const TlsFiles& files, absl::Duration interval) {
  const auto seconds = static_cast<unsigned int>(absl::ToInt64Seconds(interval));
  if (files.cert.empty()) return std::make_shared<tls::FileWatcherCertificateProvider>(files.ca, seconds);
  return std::make_shared<tls::FileWatcherCertificateProvider>(files.key, files.cert, files.ca, seconds);
}

// Holds every call of a server against the access table, before anything of the service runs.
class AccessCheck final : public grpc::AuthMetadataProcessor {
 public:
  AccessCheck(std::shared_ptr<const Credentials> credentials, PortRole port, Metrics* metrics)
      : credentials_(std::move(credentials)), port_(port), metrics_(metrics) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const std::string_view method = Value(metadata, ":path");
    const absl::StatusOr<std::optional<CallerIdentity>> caller = credentials_->Identify(*context, metadata);
    const absl::Status status = caller.ok() ? CheckAccess(port_, method, *caller) : caller.status();
    if (!status.ok()) OnRefused(method, status);
    return ToGrpcStatus(status);
  }

 private:
  // At the lowest level: whoever reaches the port can have as many of these lines as he likes.
  void OnRefused(std::string_view method, const absl::Status& status) {
    const std::string code = absl::StatusCodeToString(status.code());
    if (metrics_ != nullptr) metrics_->Get<Metric::kRequests>(code, "").Increment();
    Log(LogLevel::kDebug, "call_refused", {{"method", method}, {"status", code}});
  }

  const std::shared_ptr<const Credentials> credentials_;
  const PortRole port_;
  Metrics* const metrics_;  // null: nothing is counted
};

// Accepts the servers whose certificate names a role, and an identity unless that is empty.
class PeerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  PeerVerifier(std::string prefix, CallerRole role, std::string identity)
      : prefix_(std::move(prefix)), role_(role), identity_(std::move(identity)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const std::vector<grpc::string_ref> uris = request->uri_names();
    const std::string_view uri = uris.size() == 1 ? View(uris[0]) : std::string_view();
    const std::optional<CallerIdentity> peer = ParseIdentity(prefix_, uri);
    const bool good = peer.has_value() && peer->role == role_ && (identity_.empty() || identity_ == uri);
    *status = good ? grpc::Status::OK
                   : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  StrCat("the server's certificate is not that of the expected ",
                                         CallerRoleName(role_)));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string prefix_;
  const CallerRole role_;
  const std::string identity_;
};

// Puts a bearer token on every call.
class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(const std::string& token) : value_(StrCat(kBearer, token)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace(kAuthorization, value_);
    return grpc::Status::OK;
  }
  // For the library's log: never the token.
  grpc::string DebugString() override { return "a bearer token"; }

 private:
  const std::string value_;
};

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string token(absl::StripAsciiWhitespace(text));
  const bool one_word = !token.empty() && token.find_first_of(" \t\r\n") == std::string::npos;
  if (one_word) return token;
  return absl::InvalidArgumentError(
      StrCat("token-file: \"", path, "\" must hold one token and nothing else"));
}

}  // namespace

std::vector<Option> DescribeCredentials(CredentialOptions* o, bool tokens) {
  std::vector<Option> options = {
      Option::Text("tls-ca", &o->tls.ca, "file",
                   "PEM: the authorities whose certificates are believed. With tls-cert and tls-key: TLS."),
      Option::Text("tls-cert", &o->tls.cert, "file", "PEM: this process's certificate and those above it."),
      Option::Text("tls-key", &o->tls.key, "file", "PEM: its private key."),
      Option::Text("tls-identity-prefix", &o->identity_prefix, "uri",
                   "What stands before the role in the URI of this deployment's certificates."),
      Option::Time("tls-reload-interval", &o->reload_interval, {absl::Seconds(1), absl::Hours(1)},
                   "How often the files of certificates and tokens are looked at for changes."),
  };
  if (tokens) {
    options.push_back(Option::Text(
        "token-file", &o->token_file, "file",
        "Lines of NAME TOKEN, or NAME sha256:HEX: bearer tokens of clients, each of which is a tenant."));
  }
  return options;
}

Credentials::Credentials(const CredentialOptions& options, std::unique_ptr<TokenFile> tokens)
    : identity_prefix_(options.identity_prefix), tokens_(std::move(tokens)) {
  if (options.tls.any()) provider_ = Watch(options.tls, options.reload_interval);
}

absl::StatusOr<std::shared_ptr<const Credentials>> Credentials::Create(const CredentialOptions& options,
                                                                       const Clock* clock) {
  if (options.tls.any()) {
    if (options.tls.cert.empty()) return absl::InvalidArgumentError("tls-cert is needed with tls-ca");
    ASSIGN_OR_RETURN(const CertificateFacts own, CheckTlsFiles(options.tls));
    if (!ParseIdentity(options.identity_prefix, own.identity).has_value()) {
      return absl::InvalidArgumentError(StrCat("tls-cert: its one URI must be \"", options.identity_prefix,
                                               "\" and a role; it is \"", own.identity, "\""));
    }
  }
  std::unique_ptr<TokenFile> tokens;
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(tokens, TokenFile::Open(options.token_file, options.reload_interval, clock));
  }
  return std::shared_ptr<const Credentials>(new Credentials(options, std::move(tokens)));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials::ForServer(
    std::shared_ptr<const Credentials> self, const HostPort& listen, PortRole port, bool allow_plaintext,
    Metrics* metrics) {
  const bool has_tokens = self != nullptr && self->tokens_ != nullptr;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (self != nullptr && self->has_tls()) {
    tls::TlsServerCredentialsOptions options(self->provider_);
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(port == PortRole::kRouter
                                      ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    credentials = tls::TlsServerCredentials(options);
  } else if (!listen.IsLoopback() && has_tokens) {
    return absl::FailedPreconditionError(
        StrCat("listen: \"", listen.ToString(),
               "\" can be reached from other machines, and tokens would cross the network in plaintext; give "
               "--tls-ca, --tls-cert and --tls-key"));
  } else if (!listen.IsLoopback() && !allow_plaintext) {
    return absl::FailedPreconditionError(
        StrCat("listen: \"", listen.ToString(),
               "\" can be reached from other machines and the connection is not encrypted; give --tls-ca, "
               "--tls-cert and --tls-key, listen on loopback, or give --allow-plaintext"));
  } else if (has_tokens) {
    // Plaintext that refuses other machines and can check calls, which the insecure ones cannot.
    credentials = tls::LocalServerCredentials(LOCAL_TCP);
  } else {
    return grpc::InsecureServerCredentials();
  }
  credentials->SetAuthMetadataProcessor(std::make_shared<AccessCheck>(std::move(self), port, metrics));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForPeer(CallerRole role,
                                                               const std::string& identity) const {
  if (!has_tls()) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PeerVerifier>(identity_prefix_, role, identity));
  options.set_check_call_host(false);
  return tls::TlsCredentials(options);
}

absl::StatusOr<std::optional<CallerIdentity>> Credentials::Identify(const grpc::AuthContext& peer,
                                                                    const InputMetadata& metadata) const {
  if (tokens_ != nullptr && metadata.count(kAuthorization) > 0) {
    const std::string_view value = Value(metadata, kAuthorization);
    std::optional<CallerIdentity> caller;
    if (metadata.count(kAuthorization) == 1 && value.starts_with(kBearer))
      caller = tokens_->Find(value.substr(kBearer.size()));
    if (caller.has_value()) return caller;
    return absl::UnauthenticatedError("authorization: not a bearer token that is known here");
  }
  return has_tls() ? ParseIdentity(identity_prefix_, PeerIdentity(peer)) : std::nullopt;
}

CallerIdentity Credentials::CallerOf(const grpc::ServerContextBase& context) const {
  const absl::StatusOr<std::optional<CallerIdentity>> caller =
      Identify(*context.auth_context(), context.client_metadata());
  return caller.ok() && caller->has_value() ? **caller : CallerIdentity();
}

std::string TenantOf(const Credentials* credentials, const grpc::ServerContextBase& context) {
  if (credentials != nullptr) {
    CallerIdentity caller = credentials->CallerOf(context);
    if (!caller.name.empty()) return std::move(caller.name);
  }
  return std::string(Value(context.client_metadata(), kTenant).substr(0, kMaxTenantBytes));
}

std::string ClientKey(const Credentials* credentials, const grpc::ServerContextBase& context) {
  if (credentials != nullptr) {
    CallerIdentity caller = credentials->CallerOf(context);
    if (!caller.name.empty()) return std::move(caller.name);
  }
  // "ipv4:10.0.0.7:41234": without the port, which differs with each connection.
  const std::string peer = context.peer();
  return peer.substr(0, peer.rfind(':'));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(const TlsFiles& files,
                                                                            const std::string& token_file,
                                                                            const std::string& server) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (files.any()) {
    RETURN_IF_ERROR(CheckTlsFiles(files).status());
    tls::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(Watch(files, kClientReloadInterval));
    options.watch_root_certs();
    if (!files.cert.empty()) options.watch_identity_key_cert_pairs();
    credentials = tls::TlsCredentials(options);
  }
  if (token_file.empty()) return credentials;
  ASSIGN_OR_RETURN(const std::string token, ReadToken(token_file));
  if (!files.any()) {
    const absl::StatusOr<HostPort> address = HostPort::Parse(server);
    if (!address.ok() || !address->IsLoopback()) {
      return absl::FailedPreconditionError(
          "token-file: the token would cross the network in plaintext; give --tls-ca");
    }
    credentials = tls::LocalCredentials(LOCAL_TCP);
  }
  return grpc::CompositeChannelCredentials(
      credentials,
      tls::MetadataCredentialsFromPlugin(std::make_unique<TokenPlugin>(token), GRPC_SECURITY_MIN));
}

}  // namespace baton
