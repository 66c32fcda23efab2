#ifndef BATON_CLIENT_PROGRESS_BAR_H_
#define BATON_CLIENT_PROGRESS_BAR_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "common/clock.h"

namespace baton {

// The line of a progress bar of `width` cells, such as "[####----]  50% 4/8, 1 failed, 3 s left".
std::string ProgressLine(uint32_t done, uint32_t failed, uint32_t total, absl::Duration elapsed, int width);

// Draws that line again and again on a terminal, at most ten times a second; silent where the stream is none.
// For one thread at a time.
class ProgressBar {
 public:
  // Neither is owned; both outlive the bar.
  ProgressBar(uint32_t total, std::FILE* stream, const Clock* clock);
  ~ProgressBar();  // Clears the line.
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(uint32_t done, uint32_t failed);

 private:
  const uint32_t total_;
  std::FILE* const stream_;
  const Clock* const clock_;
  const bool is_terminal_;
  absl::Time start_;
  absl::Time last_shown_ = absl::InfinitePast();
};

}  // namespace baton

#endif  // BATON_CLIENT_PROGRESS_BAR_H_
