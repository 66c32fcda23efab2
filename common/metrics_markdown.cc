#include "common/metrics_markdown.h"

#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/metric_table.h"
#include "common/process_metrics.h"
#include "common/string_views.h"

namespace baton {
namespace {

constexpr char kHeader[] =
    "# Metrics\n\n"
    "Every process serves these at `/metrics` in Prometheus' text format. Each carries the labels `role` (of "
    "the process) and "
    "`model` besides those listed, and appears once something has moved it.\n\n"
    "| Name | Type | Unit | Labels | Meaning |\n|---|---|---|---|---|\n";
constexpr char kProcessHeader[] =
    "\n## Of the process\n\nRead from the kernel when they are asked for; without labels.\n\n"
    "| Name | Type | Meaning |\n|---|---|---|\n";

const char* TypeName(MetricType type) {
  return type == MetricType::kCounter ? "counter" : type == MetricType::kGauge ? "gauge" : "histogram";
}

std::string LabelList(const MetricRow& row) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < row.label_count(); ++i)
    labels.push_back(absl::StrCat("`", AbslView(row.labels[i]), "`"));
  return absl::StrJoin(labels, ", ");
}

std::string BucketList(std::span<const double> buckets) { return absl::StrJoin(buckets, " "); }

}  // namespace

std::string MetricsMarkdown() {
  std::string out = kHeader;
  for (const MetricRow& row : kMetricTable) {
    absl::StrAppend(&out, "| `", AbslView(row.name), "` | ", TypeName(row.type), " | ", AbslView(row.unit),
                    " | ", LabelList(row), " | ", AbslView(row.help), " |\n");
  }
  absl::StrAppend(&out, "\nUpper bounds of the buckets in seconds: ", BucketList(kLatencyBuckets),
                  ".\nIn sequences: ", BucketList(kBatchBuckets), ".\n", kProcessHeader);
  for (const prometheus::MetricFamily& family : ProcessMetrics().Collect()) {
    absl::StrAppend(&out, "| `", family.name, "` | ",
                    family.type == prometheus::MetricType::Counter ? "counter" : "gauge", " | ", family.help,
                    " |\n");
  }
  return out;
}

}  // namespace baton
