#include "client/process_group.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"

namespace baton {
namespace {

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

}  // namespace

ProcessGroup::ProcessGroup(std::FILE* out) : out_(out), colors_(isatty(fileno(out)) == 1) {
  const sigset_t set = WatchedSignals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

ProcessGroup::~ProcessGroup() {
  processes_.clear();
  close(signals_);
  const sigset_t set = WatchedSignals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

absl::Status ProcessGroup::Start(const PlannedProcess& process, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child,
                   ChildProcess::Start(process.name, path, process.arguments, process.cores));
  name_width_ = std::max(name_width_, process.name.size());
  processes_.push_back(std::move(child));
  return absl::OkStatus();
}

absl::StatusOr<ProcessGroup::Event> ProcessGroup::Supervise(absl::Duration interval,
                                                            const std::function<bool()>& done) {
  while (true) {
    if (Turn(interval)) return Event::kInterrupted;
    for (const auto& process : processes_) {
      if (const auto how = process->Ended()) {
        Print(*process);
        return absl::UnavailableError(StrCat(process->name(), " ended by itself: ", *how));
      }
    }
    if (done()) return Event::kDone;
  }
}

void ProcessGroup::Stop(absl::Duration limit) {
  for (const auto& process : processes_) process->Signal(SIGTERM);
  const SteadyClock clock;
  const absl::Time until = clock.Now() + limit;
  while (!AllEnded() && clock.Now() < until) {
    if (Turn(std::min(until - clock.Now(), absl::Seconds(1)))) break;
  }
  for (const auto& process : processes_) {
    if (!process->Ended())
      std::fprintf(out_, "%s did not end in time and is killed\n", process->name().c_str());
    process->Signal(SIGKILL);
  }
  for (const auto& process : processes_) Print(*process);
  processes_.clear();
}

bool ProcessGroup::Turn(absl::Duration limit) {
  std::vector<pollfd> watched = {{signals_, POLLIN, 0}};
  for (const auto& process : processes_) watched.push_back({process->output(), POLLIN, 0});
  poll(watched.data(), watched.size(), static_cast<int>(absl::ToInt64Milliseconds(limit)));
  for (const auto& process : processes_) Print(*process);
  bool interrupted = false;
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) interrupted |= info.ssi_signo != SIGCHLD;
  return interrupted;
}

void ProcessGroup::Print(ChildProcess& process) {
  const std::vector<std::string> lines = process.ReadLines();
  // One colour for each process, in the order of their start.
  const auto index = std::find_if(processes_.begin(), processes_.end(),
                                  [&](const auto& other) { return other.get() == &process; }) -
                     processes_.begin();
  const int color = 31 + static_cast<int>(index % 6);
  for (const std::string& line : lines) {
    if (colors_) std::fprintf(out_, "\x1b[%dm", color);
    std::fprintf(out_, "%-*s |", static_cast<int>(name_width_), process.name().c_str());
    if (colors_) std::fputs("\x1b[0m", out_);
    std::fprintf(out_, " %s\n", line.c_str());
  }
  if (!lines.empty()) std::fflush(out_);
}

bool ProcessGroup::AllEnded() {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const auto& process) { return process->Ended(); });
}

}  // namespace baton
