#include "client/connection_options.h"

#include "common/ports.h"
#include "common/str_cat.h"

namespace baton {

ConnectionOptions::ConnectionOptions() : server(StrCat("127.0.0.1:", kRouterPort)) {}

std::vector<Option> Describe(ConnectionOptions* options) {
  return {
      Option::Text("server", &options->server, "host:port", "The router."),
      Option::Time("timeout", &options->timeout, {absl::Milliseconds(1), absl::Hours(24 * 365)},
                   "How long one call may take."),
      Option::Text("tls-ca", &options->tls.ca, "file",
                   "PEM: the authorities that the router's certificate must come from; absent: plaintext."),
      Option::Text("tls-cert", &options->tls.cert, "file", "PEM: a certificate of one's own."),
      Option::Text("tls-key", &options->tls.key, "file", "PEM: its private key."),
      Option::Text("token-file", &options->token_file, "file", "A bearer token, alone in its file.")};
}

Program CommandProgram(const std::string& command, const std::string& summary) {
  return {StrCat("baton ", command), "BATON", summary};
}

}  // namespace baton
