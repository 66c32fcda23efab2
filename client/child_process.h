#ifndef BATON_CLIENT_CHILD_PROCESS_H_
#define BATON_CLIENT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace baton {

// A process started by this one, with its output in a pipe. It dies with this process, however that ends, and
// with the thread that started it; and with this object, which kills it. In a process group of its own, so
// that a terminal's Ctrl-C reaches its starter alone. For one thread.
class ChildProcess {
 public:
  // Runs `path` with `arguments` on `cores` alone (empty: anywhere). NOT_FOUND or the like when the file
  // cannot be run.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::string& name, const std::string& path,
                                                             const std::vector<std::string>& arguments,
                                                             const std::vector<int>& cores);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return name_; }
  int output() const { return closed_ ? -1 : output_; }  // For poll; -1 once it is read to its end.

  // Does nothing once it has ended.
  void Signal(int signal);

  // How it ended, as "exit status 1" or "signal 9 (Killed)"; absent while it runs.
  std::optional<std::string> Ended();

  // The lines that have come, without their ends, and at the end of the output what is left. Never waits.
  std::vector<std::string> ReadLines();

 private:
  ChildProcess(std::string name, pid_t pid, int output)
      : name_(std::move(name)), pid_(pid), output_(output) {}

  const std::string name_;
  const pid_t pid_;
  const int output_;
  std::optional<std::string> ended_;
  std::string unfinished_line_;
  bool closed_ = false;
};

}  // namespace baton

#endif  // BATON_CLIENT_CHILD_PROCESS_H_
