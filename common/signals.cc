#include "common/signals.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "common/check.h"

namespace baton {
namespace {

constexpr char kSignal = 's';
constexpr char kStop = 'q';

// All that a handler may touch: the pipe's write end, -1 without a watcher.
std::atomic<int> write_end = -1;
static_assert(std::atomic<int>::is_always_lock_free);

struct sigaction former_term;
struct sigaction former_int;
struct sigaction former_pipe;

void Tell(char what) {
  const int fd = write_end.load();
  // A full pipe holds thousands of signals that are still to be read; one more changes nothing.
  if (fd >= 0) [[maybe_unused]]
    const ssize_t written = write(fd, &what, 1);
}

extern "C" void HandleSignal(int) {
  const int saved_errno = errno;
  Tell(kSignal);
  errno = saved_errno;
}

void Install(int signal, void (*handler)(int), struct sigaction* former) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  BATON_CHECK(sigaction(signal, &action, former) == 0);
}

}  // namespace

SignalWatcher::SignalWatcher(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {
  BATON_CHECK(write_end.load() == -1);
  int ends[2];
  BATON_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  read_end_ = ends[0];
  // A handler never waits; the reader does.
  BATON_CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  write_end.store(ends[1]);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "signals");
  Install(SIGTERM, HandleSignal, &former_term);
  Install(SIGINT, HandleSignal, &former_int);
  Install(SIGPIPE, SIG_IGN, &former_pipe);
}

SignalWatcher::~SignalWatcher() {
  sigaction(SIGTERM, &former_term, nullptr);
  sigaction(SIGINT, &former_int, nullptr);
  sigaction(SIGPIPE, &former_pipe, nullptr);
  Tell(kStop);
  thread_.join();
  close(write_end.exchange(-1));
  close(read_end_);
}

void SignalWatcher::Run() {
  int count = 0;
  while (true) {
    char what = 0;
    const ssize_t bytes = read(read_end_, &what, 1);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes != 1 || what == kStop) return;
    on_signal_(++count);
  }
}

}  // namespace baton
