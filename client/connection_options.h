#ifndef BATON_CLIENT_CONNECTION_OPTIONS_H_
#define BATON_CLIENT_CONNECTION_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/option.h"
#include "common/options.h"
#include "common/tls_files.h"

namespace baton {

// How every command that talks to a router finds it.
struct ConnectionOptions {
  std::string server;                          // host:port; absent: this machine's default port.
  absl::Duration timeout = absl::Minutes(10);  // Of one call.
  TlsFiles tls;
  std::string token_file;  // Empty: no token is sent.
  bool wait_for_ready =
      false;  // For a router that may not be there yet: a call waits for it, to its timeout.

  ConnectionOptions();
};

// Its options; `options` outlives them.
std::vector<Option> Describe(ConnectionOptions* options);

// Name and environment of a command: "baton generate", BATON_SERVER and the like.
Program CommandProgram(const std::string& command, const std::string& summary);

}  // namespace baton

#endif  // BATON_CLIENT_CONNECTION_OPTIONS_H_
