#ifndef BATON_COMMON_PROCESS_METRICS_H_
#define BATON_COMMON_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace baton {

// The standard process_* metrics, read from /proc/self when they are asked for; one that cannot be read is
// left out. Safe to call from any thread.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace baton

#endif  // BATON_COMMON_PROCESS_METRICS_H_
