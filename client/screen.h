#ifndef BATON_CLIENT_SCREEN_H_
#define BATON_CLIENT_SCREEN_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace baton {

// The whole terminal, as long as the object lives; its end gives the terminal back as it was. One per
// process, for one thread. Hides ncurses, whose macros (OK, ERR, ...) break other headers.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // False where the terminal's kind is unknown; then nothing else may be called.
  bool ok() const { return terminal_ != nullptr; }

  // Shows these lines, cut to the terminal's size, and nothing else.
  void Show(const std::vector<std::string>& lines);

  // Waits for a key, at most `limit`. False once the user wants to leave: q.
  bool WaitForKey(absl::Duration limit);

 private:
  void* const terminal_;  // A SCREEN of ncurses.
};

}  // namespace baton

#endif  // BATON_CLIENT_SCREEN_H_
