#include "client/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "common/str_cat.h"

namespace baton {
namespace {

absl::Status FromErrno(const std::string& what, int error) {
  const std::string text = StrCat(what, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

// All that the child needs, made before the fork: after it only calls that are safe in a signal handler are
// allowed.
struct ChildSetup {
  const char* path;
  std::vector<char*> argv;
  cpu_set_t cores;
  bool pinned = false;
  pid_t parent;
  int output;   // Becomes standard output and error.
  int failure;  // Closed by a successful exec; takes the error number of a failed one.
};

[[noreturn]] void BecomeChild(const ChildSetup& setup) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != setup.parent) _exit(1);  // The parent was gone before the line above took hold.
  if (setup.pinned) sched_setaffinity(0, sizeof(setup.cores), &setup.cores);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(setup.output, STDOUT_FILENO);
  dup2(setup.output, STDERR_FILENO);
  execv(setup.path, setup.argv.data());
  const int error = errno;
  const ssize_t written = write(setup.failure, &error, sizeof(error));
  _exit(written == sizeof(error) ? 127 : 126);
}

// The error number of a failed exec; 0 once the exec has succeeded.
int ExecError(int failure) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(failure, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  return count == sizeof(error) ? error : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::string& name,
                                                                  const std::string& path,
                                                                  const std::vector<std::string>& arguments,
                                                                  const std::vector<int>& cores) {
  int output[2], failure[2];
  if (pipe2(output, O_CLOEXEC) != 0) return FromErrno("pipe", errno);
  if (pipe2(failure, O_CLOEXEC) != 0) {
    const int error = errno;
    close(output[0]);
    close(output[1]);
    return FromErrno("pipe", error);
  }
  ChildSetup setup;
  setup.path = path.c_str();
  setup.argv.push_back(const_cast<char*>(path.c_str()));
  for (const std::string& argument : arguments) setup.argv.push_back(const_cast<char*>(argument.c_str()));
  setup.argv.push_back(nullptr);
  CPU_ZERO(&setup.cores);
  for (const int core : cores) CPU_SET(core, &setup.cores);
  setup.pinned = !cores.empty();
  setup.parent = getpid();
  setup.output = output[1];
  setup.failure = failure[1];
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(setup);
  const int fork_error = errno;
  close(output[1]);
  close(failure[1]);
  const int error = pid < 0 ? fork_error : ExecError(failure[0]);
  close(failure[0]);
  if (error != 0) {
    close(output[0]);
    if (pid > 0) waitpid(pid, nullptr, 0);
    return FromErrno(StrCat("cannot run ", path), error);
  }
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(new ChildProcess(name, pid, output[0]));
}

ChildProcess::~ChildProcess() {
  if (!Ended()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(output_);
}

void ChildProcess::Signal(int signal) {
  if (!Ended()) kill(pid_, signal);
}

std::optional<std::string> ChildProcess::Ended() {
  if (ended_) return ended_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  if (WIFSIGNALED(status)) {
    ended_ = StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  } else {
    ended_ = StrCat("exit status ", WEXITSTATUS(status));
  }
  return ended_;
}

std::vector<std::string> ChildProcess::ReadLines() {
  std::vector<std::string> lines;
  std::array<char, 4096> part;
  while (!closed_) {
    const ssize_t count = read(output_, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // Nothing more for now.
    closed_ = count == 0;
    unfinished_line_.append(part.data(), static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = unfinished_line_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      lines.push_back(unfinished_line_.substr(begin, end - begin));
    }
    unfinished_line_.erase(0, begin);
  }
  if (closed_ && !unfinished_line_.empty()) {
    lines.push_back(unfinished_line_);
    unfinished_line_.clear();
  }
  return lines;
}

}  // namespace baton
