#include "common/metrics_http.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "prometheus/exposer.h"

namespace baton {

absl::StatusOr<std::unique_ptr<MetricsHttp>> MetricsHttp::Start(const std::string& listen,
                                                                const Metrics& metrics) {
  absl::StatusOr<HostPort> address = HostPort::Parse(listen);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("metrics listen: ", address.status().message()));
  }
  // The exposer reports failures by throwing.
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(address->ToString());
    for (const auto& collectable : metrics.collectables()) exposer->RegisterCollectable(collectable);
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty())
      return absl::UnavailableError(absl::StrCat("metrics listen: \"", listen, "\" has no port"));
    address->port = static_cast<uint16_t>(ports.front());
    return std::unique_ptr<MetricsHttp>(new MetricsHttp(*std::move(address), std::move(exposer)));
  } catch (const std::exception&) {
    return absl::UnavailableError(
        absl::StrCat("metrics listen: \"", listen, "\" cannot be had; is another process listening there?"));
  }
}

MetricsHttp::MetricsHttp(HostPort address, std::unique_ptr<prometheus::Exposer> exposer)
    : address_(std::move(address)), exposer_(std::move(exposer)) {}

MetricsHttp::~MetricsHttp() = default;

}  // namespace baton
