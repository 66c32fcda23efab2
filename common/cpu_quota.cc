#include "common/cpu_quota.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton {
namespace {

constexpr char kMount[] = "sys/fs/cgroup";

// Empty when there is no such file.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

std::optional<double> Ratio(const std::string& quota, const std::string& period) {
  double quota_us = 0;
  double period_us = 0;
  // "max" (version 2) and -1 (version 1) stand for no quota.
  if (!absl::SimpleAtod(quota, &quota_us) || !absl::SimpleAtod(period, &period_us)) return std::nullopt;
  if (!(quota_us > 0) || !(period_us > 0)) return std::nullopt;
  return quota_us / period_us;
}

std::optional<double> QuotaOfFolder(const std::string& folder) {
  const std::vector<std::string> v2 = Words(ReadFile(folder + "/cpu.max"));
  if (v2.size() == 2) return Ratio(v2[0], v2[1]);
  const std::vector<std::string> quota = Words(ReadFile(folder + "/cpu.cfs_quota_us"));
  const std::vector<std::string> period = Words(ReadFile(folder + "/cpu.cfs_period_us"));
  if (quota.size() == 1 && period.size() == 1) return Ratio(quota[0], period[0]);
  return std::nullopt;
}

// The smallest quota of `path` and the groups above it, within `mount`.
std::optional<double> QuotaOfGroup(const std::string& mount, std::string path) {
  std::optional<double> smallest;
  while (true) {
    const std::optional<double> quota = QuotaOfFolder(mount + path);
    if (quota.has_value()) smallest = std::min(quota.value(), smallest.value_or(*quota));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return smallest;
    path.resize(slash);
  }
}

uint32_t AllowedCpus() {
  // Grows until the kernel's own mask fits, on machines of more CPUs than a cpu_set_t holds.
  for (size_t cpus = CPU_SETSIZE; cpus <= (1u << 20); cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(cpus);
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return static_cast<uint32_t>(std::max(count, 1));
  }
  return 1;
}

}  // namespace

std::optional<double> CpuQuota(const std::string& root) {
  const std::string mount = absl::StrCat(root, "/", kMount);
  std::optional<double> smallest;
  // A line is "hierarchy:controllers:path"; version 2 has hierarchy 0 and no controllers.
  for (const std::string& line : Words(ReadFile(absl::StrCat(root, "/proc/self/cgroup")))) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::vector<std::string> mounts;
    if (parts[1].empty()) mounts = {mount, mount + "/unified"};
    for (const std::string& controller : std::vector<std::string>(absl::StrSplit(parts[1], ','))) {
      if (controller == "cpu") mounts = {mount + "/cpu", mount + "/cpu,cpuacct"};
    }
    for (const std::string& folder : mounts) {
      const std::optional<double> quota = QuotaOfGroup(folder, parts[2]);
      if (quota.has_value()) smallest = std::min(quota.value(), smallest.value_or(*quota));
    }
  }
  return smallest;
}

uint32_t ThreadsFor(std::optional<double> quota, uint32_t allowed_cpus) {
  const double whole = std::min(quota.value_or(allowed_cpus), static_cast<double>(allowed_cpus));
  return std::max(1u, static_cast<uint32_t>(whole));
}

uint32_t DefaultThreads() { return ThreadsFor(CpuQuota("/"), AllowedCpus()); }

}  // namespace baton
