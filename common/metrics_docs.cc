// Prints docs/metrics.md.
#include <cstdio>

#include "common/metrics_markdown.h"

int main() {
  const std::string text = baton::MetricsMarkdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
