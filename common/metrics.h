#ifndef BATON_COMMON_METRICS_H_
#define BATON_COMMON_METRICS_H_

#include <array>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/metric_table.h"
#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace prometheus {
class Registry;
}

namespace baton {

// The metrics of one process, owned by its main and handed down as a pointer. Only kMetricTable says what
// exists.
//
//   prometheus::Counter& ok = metrics->Get<Metric::kRequests>("OK", "stop");   // once, at construction
//   ok.Increment();                                                           // on the hot path
//
// Get looks the labels up under a lock; the reference it returns stays valid as long as the Metrics and may
// be used from any thread without a lookup. A label's values are a small fixed set: never an id, an address
// or a text of a client.
class Metrics {
 public:
  // `role` and `model` are labels of every metric.
  Metrics(std::string role, std::string model);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // One value for each label of the row, in its order. The first call with new values creates the series at
  // zero.
  template <Metric kId, std::convertible_to<std::string_view>... Values>
  auto& Get(const Values&... values) {
    static_assert(sizeof...(Values) == RowOf(kId).label_count(), "one value for each label of the metric");
    const std::array<std::string_view, sizeof...(Values)> labels = {std::string_view(values)...};
    if constexpr (RowOf(kId).type == MetricType::kCounter) {
      return Counter(kId, labels);
    } else if constexpr (RowOf(kId).type == MetricType::kGauge) {
      return Gauge(kId, labels);
    } else {
      return Histogram(kId, labels);
    }
  }

  // What an exposer serves: the table's metrics and those of the process. Held weakly by exposers.
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables() const;

  // Everything in Prometheus' text format.
  std::string Text() const;

 private:
  prometheus::Counter& Counter(Metric id, std::span<const std::string_view> values);
  prometheus::Gauge& Gauge(Metric id, std::span<const std::string_view> values);
  prometheus::Histogram& Histogram(Metric id, std::span<const std::string_view> values);

  // Constant.
  const std::string role_;
  const std::string model_;
  // Synchronised by itself.
  const std::shared_ptr<prometheus::Registry> registry_;
  const std::shared_ptr<prometheus::Collectable> process_;
};

}  // namespace baton

#endif  // BATON_COMMON_METRICS_H_
