#include "client/connection_options.h"

#include "common/ports.h"
#include "common/str_cat.h"

namespace baton {

ConnectionOptions::ConnectionOptions() : server(StrCat("127.0.0.1:", kRouterPort)) {}

std::vector<Option> Describe(ConnectionOptions* options) {
  return {Option::Text("server", &options->server, "host:port", "The router."),
          Option::Time("timeout", &options->timeout, {absl::Milliseconds(1), absl::Hours(24 * 365)},
                       "How long one call may take.")};
}

Program CommandProgram(const std::string& command, const std::string& summary) {
  return {StrCat("baton ", command), "BATON", summary};
}

}  // namespace baton
