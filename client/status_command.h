#ifndef BATON_CLIENT_STATUS_COMMAND_H_
#define BATON_CLIENT_STATUS_COMMAND_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection_options.h"
#include "client/router_client.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct StatusOptions {
  ConnectionOptions connection;
  bool json = false;
};

Program StatusProgram();
std::vector<Option> Describe(StatusOptions* options);

// `baton status`: the router and its workers, once.
absl::Status RunStatus(const StatusOptions& options, std::FILE* out);

// The same as lines of text, as `baton top` shows them too.
absl::StatusOr<std::vector<std::string>> StatusLines(RouterClient& client);

}  // namespace baton

#endif  // BATON_CLIENT_STATUS_COMMAND_H_
