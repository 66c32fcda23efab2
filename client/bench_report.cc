#include "client/bench_report.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace baton {
namespace {

bool Keeps(const RequestRecord& record, const ServiceObjective& objective) {
  if (!record.status.ok()) return false;
  if (objective.ttft_ms) {
    const auto ttft = record.ttft();
    if (!ttft || absl::ToDoubleMilliseconds(*ttft) > *objective.ttft_ms) return false;
  }
  if (objective.tpot_ms) {
    const auto tpot = record.tpot();
    if (tpot && absl::ToDoubleMilliseconds(*tpot) > *objective.tpot_ms) return false;
  }
  return true;
}

// One row: name, count, mean and percentiles in ms.
void AppendRow(std::string& text, const char* name, const Percentiles& values) {
  if (values.empty()) return;
  absl::StrAppendFormat(&text, "%-16s %8d %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, values.count(),
                        values.mean(), values.At(50), values.At(90), values.At(99), values.max());
}

}  // namespace

double BenchReport::PerSecond(double amount) const {
  const double seconds = absl::ToDoubleSeconds(duration);
  return seconds > 0 ? amount / seconds : 0;
}

BenchReport MakeBenchReport(const LoadResult& result, const ServiceObjective& objective) {
  BenchReport report;
  report.start = result.start;
  report.duration = result.end - result.start;
  report.requests = static_cast<uint32_t>(result.records.size());
  report.objective = objective;
  report.records = result.records;
  std::vector<double> ttft, itl, tpot, e2e, router_ttft, router_tpot, handoff;
  for (const RequestRecord& record : result.records) {
    ++report.by_status[absl::StatusCodeToString(record.status.code())];
    report.prompt_tokens += record.prompt_tokens;
    report.output_tokens += record.tokens;
    report.good += Keeps(record, objective) ? 1 : 0;
    if (!record.status.ok()) {
      ++report.by_error[std::string(record.status.message())];
      continue;
    }
    ++report.succeeded;
    e2e.push_back(absl::ToDoubleMilliseconds(record.e2e()));
    if (const auto value = record.ttft()) ttft.push_back(absl::ToDoubleMilliseconds(*value));
    if (const auto value = record.tpot()) tpot.push_back(absl::ToDoubleMilliseconds(*value));
    for (const absl::Duration gap : record.gaps) itl.push_back(absl::ToDoubleMilliseconds(gap));
    if (record.router_ttft_ms) router_ttft.push_back(*record.router_ttft_ms);
    if (record.router_tpot_ms) router_tpot.push_back(*record.router_tpot_ms);
    if (record.handoff_ms) handoff.push_back(*record.handoff_ms);
  }
  report.ttft_ms = Percentiles(std::move(ttft));
  report.itl_ms = Percentiles(std::move(itl));
  report.tpot_ms = Percentiles(std::move(tpot));
  report.e2e_ms = Percentiles(std::move(e2e));
  report.router_ttft_ms = Percentiles(std::move(router_ttft));
  report.router_tpot_ms = Percentiles(std::move(router_tpot));
  report.handoff_ms = Percentiles(std::move(handoff));
  return report;
}

std::string BenchReportText(const BenchReport& report) {
  std::string text = absl::StrFormat("%d requests in %.2f s, %d succeeded\n\n", report.requests,
                                     absl::ToDoubleSeconds(report.duration), report.succeeded);
  absl::StrAppendFormat(&text, "%-16s %8s %9s %9s %9s %9s %9s\n", "ms", "count", "mean", "p50", "p90", "p99",
                        "max");
  AppendRow(text, "TTFT", report.ttft_ms);
  AppendRow(text, "ITL", report.itl_ms);
  AppendRow(text, "TPOT", report.tpot_ms);
  AppendRow(text, "E2E", report.e2e_ms);
  AppendRow(text, "TTFT at router", report.router_ttft_ms);
  AppendRow(text, "TPOT at router", report.router_tpot_ms);
  AppendRow(text, "handoff", report.handoff_ms);
  absl::StrAppendFormat(&text, "\noutput %.1f tokens/s, prompts %.1f tokens/s, %.2f requests/s\n",
                        report.PerSecond(static_cast<double>(report.output_tokens)),
                        report.PerSecond(static_cast<double>(report.prompt_tokens)),
                        report.PerSecond(report.succeeded));
  if (report.objective.any()) {
    text += "goodput";
    if (report.objective.ttft_ms) absl::StrAppendFormat(&text, ", TTFT <= %g ms", *report.objective.ttft_ms);
    if (report.objective.tpot_ms) absl::StrAppendFormat(&text, ", TPOT <= %g ms", *report.objective.tpot_ms);
    absl::StrAppendFormat(&text, ": %.2f requests/s (%d of %d)\n", report.PerSecond(report.good), report.good,
                          report.requests);
  }
  for (const auto& [status, count] : report.by_status) {
    if (status != "OK") absl::StrAppendFormat(&text, "%d ended with %s\n", count, status);
  }
  for (const auto& [error, count] : report.by_error) absl::StrAppendFormat(&text, "  %dx %s\n", count, error);
  return text;
}

}  // namespace baton
