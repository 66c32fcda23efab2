#ifndef BATON_COMMON_RUN_PROGRAM_H_
#define BATON_COMMON_RUN_PROGRAM_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "common/options.h"

namespace baton {

// The body of a program's main: sets the options, prints the text of --help and --version, or else calls
// `run`. Returns the exit code, 0 for success; a failure is one line on standard error.
int RunProgram(const Program& program, const std::vector<Option>& options, int argc, const char* const* argv,
               const std::function<absl::Status()>& run);

}  // namespace baton

#endif  // BATON_COMMON_RUN_PROGRAM_H_
