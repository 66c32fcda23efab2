#include "client/bench_report.h"

#include <gtest/gtest.h>

#include <string>

#include "client/bench_json.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

// A request that starts `start_ms` into the load, has its first token after `ttft_ms` and then one every
// `tpot_ms`.
RequestRecord Record(double start_ms, double ttft_ms, double tpot_ms, uint32_t tokens) {
  RequestRecord record;
  record.start = kStart + absl::Milliseconds(start_ms);
  record.first_token = record.start + absl::Milliseconds(ttft_ms);
  record.last_token = *record.first_token + absl::Milliseconds(tpot_ms) * (tokens - 1);
  record.gaps.assign(tokens - 1, absl::Milliseconds(tpot_ms));
  record.end = *record.last_token;
  record.tokens = tokens;
  record.prompt_tokens = 10;
  record.router_ttft_ms = ttft_ms - 1;
  if (tokens > 1) record.router_tpot_ms = tpot_ms;
  if (tokens > 1) record.handoff_ms = ttft_ms / 10;
  return record;
}

LoadResult Result() {
  LoadResult result;
  result.start = kStart;
  result.end = kStart + absl::Seconds(2);
  result.records = {Record(0, 20, 5, 11), Record(0, 40, 10, 11), Record(100, 60, 20, 6),
                    Record(200, 100, 0, 1)};
  RequestRecord failed;
  failed.start = kStart;
  failed.end = kStart + absl::Milliseconds(3);
  failed.status = absl::DeadlineExceededError("too late \xff");
  result.records.push_back(failed);
  return result;
}

TEST(BenchReport, CountsAndRates) {
  const BenchReport report = MakeBenchReport(Result(), {});
  EXPECT_EQ(report.requests, 5u);
  EXPECT_EQ(report.succeeded, 4u);
  EXPECT_EQ(report.output_tokens, 29u);
  EXPECT_EQ(report.prompt_tokens, 40u);
  EXPECT_EQ(report.PerSecond(29), 14.5);
  EXPECT_EQ(report.by_status.at("OK"), 4u);
  EXPECT_EQ(report.by_status.at("DEADLINE_EXCEEDED"), 1u);
}

TEST(BenchReport, DistributionsLeaveOutWhatIsAbsent) {
  const BenchReport report = MakeBenchReport(Result(), {});
  EXPECT_EQ(report.ttft_ms.sorted(), (std::vector<double>{20, 40, 60, 100}));
  EXPECT_EQ(report.tpot_ms.sorted(), (std::vector<double>{5, 10, 20}));
  EXPECT_EQ(report.itl_ms.count(), 25u);
  EXPECT_EQ(report.e2e_ms.sorted(), (std::vector<double>{70, 100, 140, 160}));
  EXPECT_EQ(report.router_ttft_ms.sorted(), (std::vector<double>{19, 39, 59, 99}));
  EXPECT_EQ(report.router_tpot_ms.count(), 3u);
  EXPECT_EQ(report.handoff_ms.sorted(), (std::vector<double>{2, 4, 6}));
}

TEST(BenchReport, GoodputNeedsBothLimits) {
  ServiceObjective objective;
  EXPECT_EQ(MakeBenchReport(Result(), objective).good, 4u);
  objective.ttft_ms = 60;
  EXPECT_EQ(MakeBenchReport(Result(), objective).good, 3u);
  objective.tpot_ms = 10;
  EXPECT_EQ(MakeBenchReport(Result(), objective).good, 2u);
  objective.ttft_ms.reset();
  EXPECT_EQ(MakeBenchReport(Result(), objective).good, 3u) << "one token has no TPOT";
}

TEST(BenchReport, JsonHasTheKeysOfGhz) {
  ServiceObjective objective;
  objective.ttft_ms = 60;
  const auto json = nlohmann::json::parse(BenchReportJson(MakeBenchReport(Result(), objective)));
  EXPECT_EQ(json["count"], 5);
  EXPECT_EQ(json["total"], 2'000'000'000);
  EXPECT_EQ(json["average"], 117'500'000);
  EXPECT_EQ(json["fastest"], 70'000'000);
  EXPECT_EQ(json["slowest"], 160'000'000);
  EXPECT_EQ(json["rps"], 2.5);
  EXPECT_EQ(json["statusCodeDistribution"], (nlohmann::json{{"OK", 4}, {"DeadlineExceeded", 1}}));
  EXPECT_EQ(json["errorDistribution"].size(), 1u);
  EXPECT_EQ(json["details"].size(), 5u);
  EXPECT_EQ(json["details"][4]["status"], "DeadlineExceeded");
  EXPECT_EQ(json["details"][4]["ttft_ms"], nullptr);
  EXPECT_EQ(json["details"][2]["ttft_ms"], 60);
  EXPECT_EQ(json["details"][2]["tpot_ms"], 20);
  EXPECT_EQ(json["latencyDistribution"][2], (nlohmann::json{{"percentage", 50}, {"latency", 100'000'000}}));
  int in_histogram = 0;
  for (const auto& row : json["histogram"]) in_histogram += row["count"].get<int>();
  EXPECT_EQ(in_histogram, 4);
  EXPECT_EQ(json["histogram"].back()["mark"], 0.16);
  EXPECT_EQ(json["baton"]["ttft_ms"]["p50"], 40);
  EXPECT_EQ(json["baton"]["handoff_ms"]["p50"], 4);
  EXPECT_EQ(json["baton"]["goodput"]["good"], 3);
}

TEST(BenchReport, AnEmptyLoadHasNoPercentiles) {
  LoadResult nothing;
  const BenchReport report = MakeBenchReport(nothing, {});
  EXPECT_NE(BenchReportText(report).find("0 requests"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(BenchReportJson(report))["baton"]["ttft_ms"], nullptr);
}

}  // namespace
}  // namespace baton
