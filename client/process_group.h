#ifndef BATON_CLIENT_PROCESS_GROUP_H_
#define BATON_CLIENT_PROCESS_GROUP_H_

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/child_process.h"
#include "client/up_plan.h"

namespace baton {

// Processes that live and die together, with their output on one stream, each line behind the name of its
// process.
//
//   Start each -> Supervise until a signal, a death or `done` -> Stop
//
// Blocks SIGINT, SIGTERM and SIGCHLD in the thread that makes it, which alone may use it; make it before
// other threads.
class ProcessGroup {
 public:
  enum class Event { kInterrupted, kDone };

  // `out` is not owned.
  explicit ProcessGroup(std::FILE* out);
  ~ProcessGroup();  // Kills what still runs.
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  absl::Status Start(const PlannedProcess& process, const std::string& path);

  // Prints what the processes write, until SIGINT or SIGTERM comes, or `done`, asked every `interval`, is
  // true. UNAVAILABLE, naming it, when a process ends.
  absl::StatusOr<Event> Supervise(absl::Duration interval, const std::function<bool()>& done);

  // Asks every process to end, and kills those that still run after `limit` or at another signal. Prints to
  // the last.
  void Stop(absl::Duration limit);

 private:
  // Waits for output or a signal, at most `limit`, and prints. True when SIGINT or SIGTERM came.
  bool Turn(absl::Duration limit);
  void Print(ChildProcess& process);
  bool AllEnded();

  std::FILE* const out_;
  const bool colors_;
  int signals_ = -1;
  std::vector<std::unique_ptr<ChildProcess>> processes_;
  size_t name_width_ = 0;
};

}  // namespace baton

#endif  // BATON_CLIENT_PROCESS_GROUP_H_
