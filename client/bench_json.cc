#include "client/bench_json.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

int64_t Nanoseconds(double ms) { return static_cast<int64_t>(ms * 1e6); }

Json MillisecondsOrNull(const std::optional<absl::Duration>& duration) {
  if (!duration) return nullptr;
  return absl::ToDoubleMilliseconds(*duration);
}

// gRPC's code as ghz spells it: "OK", "DeadlineExceeded".
std::string GhzCode(const std::string& code) {
  if (code == "OK") return code;
  std::string camel;
  for (const absl::string_view word : absl::StrSplit(code, '_')) {
    std::string lower = absl::AsciiStrToLower(word);
    lower[0] = absl::ascii_toupper(lower[0]);
    camel += lower == "Cancelled" ? "Canceled" : lower;
  }
  return camel;
}

std::string Timestamp(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

Json LatencyDistribution(const Percentiles& e2e_ms) {
  Json rows = Json::array();
  if (e2e_ms.empty()) return rows;
  for (const int percentage : {10, 25, 50, 75, 90, 95, 99}) {
    rows.push_back({{"percentage", percentage}, {"latency", Nanoseconds(e2e_ms.At(percentage))}});
  }
  return rows;
}

// Ten equal steps from the fastest to the slowest; a mark counts what is above the one before and not above
// it. As in ghz, marks are in seconds and frequencies are parts of all.
Json Histogram(const Percentiles& e2e_ms) {
  Json rows = Json::array();
  if (e2e_ms.empty()) return rows;
  constexpr int kSteps = 10;
  auto begin = e2e_ms.sorted().begin();
  for (int step = 0; step <= kSteps; ++step) {
    const double mark =
        step == kSteps ? e2e_ms.max() : e2e_ms.min() + (e2e_ms.max() - e2e_ms.min()) * step / kSteps;
    const auto end = std::upper_bound(begin, e2e_ms.sorted().end(), mark);
    const auto count = end - begin;
    rows.push_back({{"mark", mark / 1e3},
                    {"count", count},
                    {"frequency", static_cast<double>(count) / static_cast<double>(e2e_ms.count())}});
    begin = end;
  }
  return rows;
}

Json Details(const BenchReport& report) {
  Json rows = Json::array();
  for (const RequestRecord& record : report.records) {
    rows.push_back({{"timestamp", Timestamp(record.start)},
                    {"latency", absl::ToInt64Nanoseconds(record.e2e())},
                    {"error", std::string(record.status.message())},
                    {"status", GhzCode(absl::StatusCodeToString(record.status.code()))},
                    {"ttft_ms", MillisecondsOrNull(record.ttft())},
                    {"tpot_ms", MillisecondsOrNull(record.tpot())}});
  }
  return rows;
}

Json Summary(const Percentiles& values) {
  if (values.empty()) return nullptr;
  return {{"count", values.count()}, {"mean", values.mean()}, {"min", values.min()}, {"p50", values.At(50)},
          {"p90", values.At(90)},    {"p99", values.At(99)},  {"max", values.max()}};
}

Json BatonPart(const BenchReport& report) {
  Json part = {{"ttft_ms", Summary(report.ttft_ms)},
               {"itl_ms", Summary(report.itl_ms)},
               {"tpot_ms", Summary(report.tpot_ms)},
               {"e2e_ms", Summary(report.e2e_ms)},
               {"router_ttft_ms", Summary(report.router_ttft_ms)},
               {"router_tpot_ms", Summary(report.router_tpot_ms)},
               {"handoff_ms", Summary(report.handoff_ms)},
               {"prompt_tokens", report.prompt_tokens},
               {"output_tokens", report.output_tokens},
               {"output_tokens_per_second", report.PerSecond(static_cast<double>(report.output_tokens))}};
  if (report.objective.any()) {
    Json goodput = {{"good", report.good}, {"requests_per_second", report.PerSecond(report.good)}};
    if (report.objective.ttft_ms) goodput["slo_ttft_ms"] = *report.objective.ttft_ms;
    if (report.objective.tpot_ms) goodput["slo_tpot_ms"] = *report.objective.tpot_ms;
    part["goodput"] = goodput;
  }
  return part;
}

}  // namespace

std::string BenchReportJson(const BenchReport& report) {
  const Percentiles& e2e = report.e2e_ms;
  Json codes = Json::object();
  for (const auto& [code, count] : report.by_status) codes[GhzCode(code)] = count;
  Json errors = Json::object();
  for (const auto& [error, count] : report.by_error) errors[error] = count;
  const Json json = {{"date", Timestamp(report.start)},
                     {"count", report.requests},
                     {"total", absl::ToInt64Nanoseconds(report.duration)},
                     {"average", e2e.empty() ? 0 : Nanoseconds(e2e.mean())},
                     {"fastest", e2e.empty() ? 0 : Nanoseconds(e2e.min())},
                     {"slowest", e2e.empty() ? 0 : Nanoseconds(e2e.max())},
                     {"rps", report.PerSecond(report.requests)},
                     {"errorDistribution", errors},
                     {"statusCodeDistribution", codes},
                     {"latencyDistribution", LatencyDistribution(e2e)},
                     {"histogram", Histogram(e2e)},
                     {"details", Details(report)},
                     {"baton", BatonPart(report)}};
  // Replaces what is not UTF-8 in a server's text, and so does not throw.
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace baton
