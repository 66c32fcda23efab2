#include "client/top_command.h"

#include <unistd.h>

#include <string>

#include "client/describe.h"
#include "client/router_client.h"
#include "client/screen.h"
#include "client/status_command.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {

Program TopProgram() {
  return CommandProgram("top",
                        "Shows the router and its workers live; q leaves.\n\n"
                        "  baton top --interval 500ms");
}

std::vector<Option> Describe(TopOptions* o) {
  return Joined({Option::Time("interval", &o->interval, {absl::Milliseconds(50), absl::Hours(1)},
                              "Between two looks.")},
                Describe(&o->connection));
}

absl::Status RunTop(const TopOptions& options) {
  if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1) {
    return absl::FailedPreconditionError("top needs a terminal; baton status prints the same once");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterClient> connected, RouterClient::Create(options.connection));
  RouterClient& client = *connected;
  Screen screen;
  if (!screen.ok()) return absl::FailedPreconditionError("this terminal is unknown to ncurses; see TERM");
  do {
    const auto lines = StatusLines(client);
    screen.Show(lines.ok() ? *lines
                           : std::vector<std::string>{StrCat(options.connection.server, " does not answer:"),
                                                      lines.status().ToString()});
  } while (screen.WaitForKey(options.interval));
  return absl::OkStatus();
}

}  // namespace baton
