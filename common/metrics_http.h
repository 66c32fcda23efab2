#ifndef BATON_COMMON_METRICS_HTTP_H_
#define BATON_COMMON_METRICS_HTTP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/host_port.h"
#include "common/metrics.h"

namespace prometheus {
class Exposer;
}

namespace baton {

// Serves a process's metrics over HTTP at /metrics until it is destroyed. Metrics that are gone are simply no
// longer served.
class MetricsHttp {
 public:
  // Listens on `listen`, host:port, port 0 for a free one. INVALID_ARGUMENT or UNAVAILABLE naming it.
  static absl::StatusOr<std::unique_ptr<MetricsHttp>> Start(const std::string& listen,
                                                            const Metrics& metrics);

  ~MetricsHttp();
  MetricsHttp(const MetricsHttp&) = delete;
  MetricsHttp& operator=(const MetricsHttp&) = delete;

  const HostPort& address() const { return address_; }

 private:
  MetricsHttp(HostPort address, std::unique_ptr<prometheus::Exposer> exposer);

  const HostPort address_;
  const std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace baton

#endif  // BATON_COMMON_METRICS_HTTP_H_
