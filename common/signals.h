#ifndef BATON_COMMON_SIGNALS_H_
#define BATON_COMMON_SIGNALS_H_

#include <functional>
#include <thread>

namespace baton {

// Turns SIGTERM and SIGINT into calls of a function, on a thread of its own. Also ignores SIGPIPE: a closed
// pipe is an error of the write. One instance at a time per process; the former dispositions come back with
// its end.
class SignalWatcher {
 public:
  // `on_signal(n)` is called for the n-th signal, n from 1; not in a signal handler, so it may lock.
  explicit SignalWatcher(std::function<void(int nth)> on_signal);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Run();

  const std::function<void(int)> on_signal_;
  int read_end_ = -1;
  std::thread thread_;
};

}  // namespace baton

#endif  // BATON_COMMON_SIGNALS_H_
