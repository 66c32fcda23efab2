#include "client/progress_bar.h"

#include <unistd.h>

#include <cmath>

#include "absl/strings/str_format.h"

namespace baton {

std::string ProgressLine(uint32_t done, uint32_t failed, uint32_t total, absl::Duration elapsed, int width) {
  const double part = total == 0 ? 1 : static_cast<double>(done) / total;
  const int filled = static_cast<int>(part * width);
  std::string line = absl::StrFormat("[%s%s] %3.0f%% %d/%d", std::string(filled, '#'),
                                     std::string(width - filled, '-'), std::floor(part * 100), done, total);
  if (failed > 0) line += absl::StrFormat(", %d failed", failed);
  if (done > 0 && done < total) {
    const double left = absl::ToDoubleSeconds(elapsed) * (total - done) / done;
    line += absl::StrFormat(", %.0f s left", std::ceil(left));
  }
  return line;
}

ProgressBar::ProgressBar(uint32_t total, std::FILE* stream, const Clock* clock)
    : total_(total),
      stream_(stream),
      clock_(clock),
      is_terminal_(isatty(fileno(stream)) == 1),
      start_(clock->Now()) {}

void ProgressBar::Show(uint32_t done, uint32_t failed) {
  const absl::Time now = clock_->Now();
  if (done == 0) start_ = now;
  if (!is_terminal_ || now - last_shown_ < absl::Milliseconds(100)) return;
  last_shown_ = now;
  const std::string line = ProgressLine(done, failed, total_, now - start_, 30);
  std::fprintf(stream_, "\r\x1b[K%s", line.c_str());
  std::fflush(stream_);
}

ProgressBar::~ProgressBar() {
  if (is_terminal_) std::fputs("\r\x1b[K", stream_);
}

}  // namespace baton
