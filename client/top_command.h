#ifndef BATON_CLIENT_TOP_COMMAND_H_
#define BATON_CLIENT_TOP_COMMAND_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/connection_options.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct TopOptions {
  ConnectionOptions connection;
  absl::Duration interval = absl::Seconds(1);

  TopOptions() { connection.timeout = absl::Seconds(3); }
};

Program TopProgram();
std::vector<Option> Describe(TopOptions* options);

// `baton top`: what `baton status` shows, live on the whole terminal until q or Ctrl-C. FAILED_PRECONDITION
// without a terminal. A router that does not answer is shown and asked again.
absl::Status RunTop(const TopOptions& options);

}  // namespace baton

#endif  // BATON_CLIENT_TOP_COMMAND_H_
