#include "common/metrics_markdown.h"

#include "common/metric_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::HasSubstr;

TEST(MetricsMarkdown, HoldsEveryMetricOnce) {
  const std::string markdown = MetricsMarkdown();
  for (const MetricRow& row : kMetricTable) {
    const std::string cell = "| `" + std::string(row.name) + "` |";
    const size_t at = markdown.find(cell);
    ASSERT_NE(at, std::string::npos) << cell;
    EXPECT_EQ(markdown.find(cell, at + 1), std::string::npos) << cell;
  }
  EXPECT_THAT(
      markdown,
      HasSubstr("| `baton_requests_total` | counter | requests | `code`, `finish` | Requests ended,"));
  EXPECT_THAT(markdown, HasSubstr("seconds: 5e-05 0.0001 0.00025 0.0005 0.001 0.0025"));
  EXPECT_THAT(markdown, HasSubstr(" 20 40 80.\n"));
  EXPECT_THAT(markdown, HasSubstr("| `process_cpu_seconds_total` | counter |"));
}

}  // namespace
}  // namespace baton
