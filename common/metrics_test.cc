#include "common/metrics.h"

#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricTable, NamesFollowPrometheusPractice) {
  std::set<std::string_view> names;
  for (const MetricRow& row : kMetricTable) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(row.name.starts_with("baton_"));
    EXPECT_EQ(row.name.ends_with("_total"), row.type == MetricType::kCounter);
    EXPECT_EQ(row.name.ends_with("_seconds"), row.unit == "seconds");
    EXPECT_TRUE(row.help.ends_with("."));
    for (size_t i = 1; i < row.buckets.size(); ++i) EXPECT_LT(row.buckets[i - 1], row.buckets[i]);
  }
}

class MetricsTest : public testing::Test {
 protected:
  Metrics metrics_{"router", "smol"};
};

TEST_F(MetricsTest, CountersGaugesAndHistogramsMove) {
  prometheus::Counter& ok = metrics_.Get<Metric::kRequests>("OK", "stop");
  ok.Increment();
  ok.Increment(2);
  metrics_.Get<Metric::kKvBlocks>("FREE").Set(5);
  metrics_.Get<Metric::kTimeToFirstToken>().Observe(0.0015);
  const std::string text = metrics_.Text();
  EXPECT_THAT(
      text,
      HasSubstr("baton_requests_total{model=\"smol\",role=\"router\",code=\"OK\",finish=\"stop\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE baton_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_blocks{model=\"smol\",role=\"router\",state=\"FREE\"} 5\n"));
  EXPECT_THAT(
      text,
      HasSubstr("baton_time_to_first_token_seconds_bucket{model=\"smol\",role=\"router\",le=\"0.001\"} 0\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "baton_time_to_first_token_seconds_bucket{model=\"smol\",role=\"router\",le=\"0.0025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_build_info{model=\"smol\",role=\"router\",version=\"0.1.0\"} 1\n"));
}

TEST_F(MetricsTest, TheSameLabelsNameTheSameSeries) {
  EXPECT_EQ(&metrics_.Get<Metric::kKvTransferBytes>("grpc"), &metrics_.Get<Metric::kKvTransferBytes>("grpc"));
  EXPECT_NE(&metrics_.Get<Metric::kKvTransferBytes>("grpc"),
            &metrics_.Get<Metric::kKvTransferBytes>("inproc"));
}

TEST_F(MetricsTest, ARowsOwnRoleReplacesTheProcesss) {
  metrics_.Get<Metric::kWorkers>("decode", "ready").Set(2);
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("baton_workers{model=\"smol\",role=\"decode\",state=\"ready\"} 2\n"));
}

TEST_F(MetricsTest, OnlyWhatIsUsedIsExported) {
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("baton_requests_waiting")));
}

TEST_F(MetricsTest, ThreadsCountTogether) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      prometheus::Counter& tokens = metrics_.Get<Metric::kGenerationTokens>();
      prometheus::Histogram& gaps = metrics_.Get<Metric::kInterTokenLatency>();
      for (int i = 0; i < 1000; ++i) {
        tokens.Increment();
        gaps.Observe(0.001);
      }
      EXPECT_FALSE(metrics_.Text().empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics_.Get<Metric::kGenerationTokens>().Value(), 4000);
  EXPECT_EQ(metrics_.Get<Metric::kInterTokenLatency>().Collect().histogram.sample_count, 4000u);
}

}  // namespace
}  // namespace baton
