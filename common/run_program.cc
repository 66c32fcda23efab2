#include "common/run_program.h"

#include <cstdio>
#include <string>

#include "absl/synchronization/mutex.h"

namespace baton {

int RunProgram(const Program& program, const std::vector<Option>& options, int argc, const char* const* argv,
               const std::function<absl::Status()>& run) {
#ifdef NDEBUG
  // Packaged Abseil looks for deadlocks at every lock of a mutex, gRPC's too; sanitizer builds still do.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  const absl::StatusOr<std::string> text = ParseOptions(program, options, argc, argv);
  if (text.ok() && !text->empty()) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  const absl::Status status = text.ok() ? run() : text.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", program.name.c_str(), std::string(status.message()).c_str());
  return 1;
}

}  // namespace baton
