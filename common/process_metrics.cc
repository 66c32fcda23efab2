#include "common/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace baton {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string ReadWhole(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

MetricFamily Single(std::string name, MetricType type, std::string help, double value) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  family.metric.resize(1);
  (type == MetricType::Counter ? family.metric[0].counter.value : family.metric[0].gauge.value) = value;
  return family;
}

// Fields of /proc/self/stat from the third (state) on: the second, the command in parentheses, may contain
// spaces.
std::vector<std::string> StatFields() {
  const std::string stat = ReadWhole("/proc/self/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return {};
  return absl::StrSplit(stat.substr(end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

// `number` counts from 1, as proc(5) does.
std::optional<double> StatField(const std::vector<std::string>& fields, size_t number) {
  double value = 0;
  if (number - 3 >= fields.size() || !absl::SimpleAtod(fields[number - 3], &value)) return std::nullopt;
  return value;
}

// Unix seconds.
std::optional<double> BootTime() {
  const std::string stat = ReadWhole("/proc/stat");
  constexpr char kKey[] = "\nbtime ";
  const size_t at = stat.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + sizeof(kKey) - 1;
  double value = 0;
  if (!absl::SimpleAtod(stat.substr(begin, stat.find('\n', begin) - begin), &value)) return std::nullopt;
  return value;
}

std::optional<double> OpenDescriptors() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return std::nullopt;
  int entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries - 3;  // ".", ".." and the directory itself.
}

}  // namespace

std::vector<MetricFamily> ProcessMetrics::Collect() const {
  const std::vector<std::string> stat = StatFields();
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::vector<MetricFamily> families;
  const auto gauge = [&families](const char* name, const char* help, std::optional<double> value) {
    if (value.has_value()) families.push_back(Single(name, MetricType::Gauge, help, *value));
  };
  const std::optional<double> user = StatField(stat, 14);
  const std::optional<double> system = StatField(stat, 15);
  if (user.has_value() && system.has_value()) {
    families.push_back(Single("process_cpu_seconds_total", MetricType::Counter,
                              "Total user and system CPU time spent in seconds.", (*user + *system) / ticks));
  }
  const std::optional<double> boot = BootTime();
  const std::optional<double> started = StatField(stat, 22);
  if (boot.has_value() && started.has_value()) {
    gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
          *boot + *started / ticks);
  }
  gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", StatField(stat, 23));
  if (const std::optional<double> pages = StatField(stat, 24); pages.has_value()) {
    gauge("process_resident_memory_bytes", "Resident memory size in bytes.", *pages * page_bytes);
  }
  gauge("process_threads", "Number of threads.", StatField(stat, 20));
  gauge("process_open_fds", "Number of open file descriptors.", OpenDescriptors());
  if (rlimit limit; getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    gauge("process_max_fds", "Maximum number of open file descriptors.", static_cast<double>(limit.rlim_cur));
  }
  return families;
}

}  // namespace baton
