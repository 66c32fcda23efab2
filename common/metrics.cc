#include "common/metrics.h"

#include <map>
#include <utility>

#include "common/process_metrics.h"
#include "common/version.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace baton {
namespace {

constexpr bool TableFollowsTheEnum() {
  for (size_t i = 0; i < std::size(kMetricTable); ++i) {
    const MetricRow& row = kMetricTable[i];
    if (static_cast<size_t>(row.id) != i) return false;
    if ((row.type == MetricType::kHistogram) == row.buckets.empty()) return false;
  }
  return std::size(kMetricTable) == static_cast<size_t>(Metric::kModelLoad) + 1;
}
static_assert(TableFollowsTheEnum());

using Labels = std::map<std::string, std::string>;

Labels LabelsOf(const MetricRow& row, std::span<const std::string_view> values) {
  Labels labels;
  for (size_t i = 0; i < values.size(); ++i) labels.emplace(row.labels[i], values[i]);
  return labels;
}

Labels ProcessLabels(const MetricRow& row, const std::string& role, const std::string& model) {
  Labels labels = {{"role", role}, {"model", model}};
  for (const std::string_view own : row.labels) labels.erase(std::string(own));
  return labels;
}

// The registry returns the family that it has when one of that name exists.
template <typename Builder>
auto& FamilyOf(Builder builder, const MetricRow& row, Labels process_labels, prometheus::Registry& registry) {
  return builder.Name(std::string(row.name))
      .Help(std::string(row.help))
      .Labels(std::move(process_labels))
      .Register(registry);
}

}  // namespace

Metrics::Metrics(std::string role, std::string model)
    : role_(std::move(role)),
      model_(std::move(model)),
      registry_(std::make_shared<prometheus::Registry>()),
      process_(std::make_shared<ProcessMetrics>()) {
  Get<Metric::kBuildInfo>(kVersion).Set(1);
}

Metrics::~Metrics() = default;

prometheus::Counter& Metrics::Counter(Metric id, std::span<const std::string_view> values) {
  const MetricRow& row = RowOf(id);
  return FamilyOf(prometheus::BuildCounter(), row, ProcessLabels(row, role_, model_), *registry_)
      .Add(LabelsOf(row, values));
}

prometheus::Gauge& Metrics::Gauge(Metric id, std::span<const std::string_view> values) {
  const MetricRow& row = RowOf(id);
  return FamilyOf(prometheus::BuildGauge(), row, ProcessLabels(row, role_, model_), *registry_)
      .Add(LabelsOf(row, values));
}

prometheus::Histogram& Metrics::Histogram(Metric id, std::span<const std::string_view> values) {
  const MetricRow& row = RowOf(id);
  return FamilyOf(prometheus::BuildHistogram(), row, ProcessLabels(row, role_, model_), *registry_)
      .Add(LabelsOf(row, values), std::vector<double>(row.buckets.begin(), row.buckets.end()));
}

std::vector<std::shared_ptr<prometheus::Collectable>> Metrics::collectables() const {
  return {registry_, process_};
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& collectable : collectables()) {
    for (prometheus::MetricFamily& family : collectable->Collect()) families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace baton
