#include "common/process_metrics.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

std::map<std::string, double> Values() {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : ProcessMetrics().Collect()) {
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetrics, AgreesWithTheKernelsOtherAnswers) {
  const std::map<std::string, double> values = Values();
  ASSERT_EQ(values.size(), 7u);
  rusage usage;
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_LE(values.at("process_resident_memory_bytes"), usage.ru_maxrss * 1024.0 + (1 << 20));
  EXPECT_GE(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  const double cpu_seconds =
      usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  EXPECT_NEAR(values.at("process_cpu_seconds_total"), cpu_seconds, 0.1);
  EXPECT_NEAR(values.at("process_start_time_seconds"), absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()),
              120);
  EXPECT_GE(values.at("process_threads"), 1);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
}

TEST(ProcessMetrics, CountsDescriptors) {
  const double before = Values().at("process_open_fds");
  const int fd = open("/dev/null", O_RDONLY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(Values().at("process_open_fds"), before + 1);
  close(fd);
}

}  // namespace
}  // namespace baton
