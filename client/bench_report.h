#ifndef BATON_CLIENT_BENCH_REPORT_H_
#define BATON_CLIENT_BENCH_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load.h"
#include "client/percentiles.h"
#include "client/request_record.h"

namespace baton {

// What a request must keep to count as good.
struct ServiceObjective {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;  // A request of one token has no TPOT and keeps any.

  bool any() const { return ttft_ms || tpot_ms; }
};

// The figures of one load. A plain value; latencies are those of the requests that ended well.
struct BenchReport {
  absl::Time start;
  absl::Duration duration;
  uint32_t requests = 0;
  uint32_t succeeded = 0;
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;

  // As the client saw them, in ms.
  Percentiles ttft_ms{{}};
  Percentiles itl_ms{{}};  // All gaps between tokens of all requests.
  Percentiles tpot_ms{{}};
  Percentiles e2e_ms{{}};
  // As the router reported them.
  Percentiles router_ttft_ms{{}};
  Percentiles router_tpot_ms{{}};
  Percentiles handoff_ms{{}};

  ServiceObjective objective;
  uint32_t good = 0;  // Ended well and kept the objective.

  std::map<std::string, uint32_t> by_status;  // "OK", "UNAVAILABLE", ...
  std::map<std::string, uint32_t> by_error;   // Texts of the requests that failed.
  std::vector<RequestRecord> records;

  // Per second of the load; 0 for a load without duration.
  double PerSecond(double amount) const;
};

BenchReport MakeBenchReport(const LoadResult& result, const ServiceObjective& objective);

// For people: a table of percentiles and a few lines.
std::string BenchReportText(const BenchReport& report);

}  // namespace baton

#endif  // BATON_CLIENT_BENCH_REPORT_H_
