#ifndef BATON_COMMON_METRICS_MARKDOWN_H_
#define BATON_COMMON_METRICS_MARKDOWN_H_

#include <string>

namespace baton {

// docs/metrics.md: every row of kMetricTable and the process's own metrics.
std::string MetricsMarkdown();

}  // namespace baton

#endif  // BATON_COMMON_METRICS_MARKDOWN_H_
