#ifndef BATON_COMMON_CPU_QUOTA_H_
#define BATON_COMMON_CPU_QUOTA_H_

#include <cstdint>
#include <optional>
#include <string>

namespace baton {

// How many threads of computation this process should run: whole CPUs of its cgroup's quota (version 2 or 1),
// at most the CPUs it may run on, at least 1. More would only be throttled.
uint32_t DefaultThreads();

// The smallest CPU quota, in CPUs, on the way from this process's cgroup to the root; absent when none is
// set. `root` is the folder that holds proc/ and sys/: "/" but in tests.
std::optional<double> CpuQuota(const std::string& root);

// The policy of DefaultThreads. `allowed_cpus` is what the affinity mask allows.
uint32_t ThreadsFor(std::optional<double> quota, uint32_t allowed_cpus);

}  // namespace baton

#endif  // BATON_COMMON_CPU_QUOTA_H_
