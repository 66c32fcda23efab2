#ifndef BATON_CLIENT_CONNECTION_OPTIONS_H_
#define BATON_CLIENT_CONNECTION_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

// How every command that talks to a router finds it.
struct ConnectionOptions {
  std::string server;                          // host:port; absent: this machine's default port.
  absl::Duration timeout = absl::Minutes(10);  // Of one call.

  ConnectionOptions();
};

// Its options; `options` outlives them.
std::vector<Option> Describe(ConnectionOptions* options);

// Name and environment of a command: "baton generate", BATON_SERVER and the like.
Program CommandProgram(const std::string& command, const std::string& summary);

}  // namespace baton

#endif  // BATON_CLIENT_CONNECTION_OPTIONS_H_
