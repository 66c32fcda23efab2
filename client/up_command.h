#ifndef BATON_CLIENT_UP_COMMAND_H_
#define BATON_CLIENT_UP_COMMAND_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/up_plan.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct UpOptions {
  UpRequest request;
  uint32_t port = 0;  // The router's; 0: the default one, or a free one where that is taken.
  bool pin = true;
  std::string binaries;  // Folder of the services; empty: where this program lies.
  absl::Duration ready_timeout = absl::Minutes(2);
  absl::Duration stop_timeout = absl::Seconds(15);
};

Program UpProgram();
std::vector<Option> Describe(UpOptions* options);

// `baton up`: a router and its workers as processes of this machine, their output in one terminal. Returns OK
// after Ctrl-C or SIGTERM, with every process ended; a process that ends by itself ends the others and is an
// error, as is one that is not ready in time. Call it from the main thread, before the process has others:
// signals are blocked in those made later.
absl::Status RunUp(const UpOptions& options, std::FILE* out);

}  // namespace baton

#endif  // BATON_CLIENT_UP_COMMAND_H_
