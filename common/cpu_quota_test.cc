#include "common/cpu_quota.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace baton {
namespace {

class CpuQuotaTest : public testing::Test {
 protected:
  CpuQuotaTest()
      : root_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  const std::string root_;
};

TEST_F(CpuQuotaTest, Version2) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 2.5);
}

TEST_F(CpuQuotaTest, Version2TakesTheSmallestOnTheWayUp) {
  Write("proc/self/cgroup", "0::/pod/container\n");
  Write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  Write("sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 1.5);
}

TEST_F(CpuQuotaTest, Version1) {
  Write("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(root_), 3);
}

TEST_F(CpuQuotaTest, AbsentWithoutFilesOrWithDamagedOnes) {
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("proc/self/cgroup", "0::/\nnonsense\n");
  Write("sys/fs/cgroup/cpu.max", "many 100000\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
}

TEST(ThreadsFor, WholeCpusWithinTheMaskAndAtLeastOne) {
  EXPECT_EQ(ThreadsFor(std::nullopt, 8), 8u);
  EXPECT_EQ(ThreadsFor(2.5, 8), 2u);
  EXPECT_EQ(ThreadsFor(0.5, 8), 1u);
  EXPECT_EQ(ThreadsFor(64, 8), 8u);
  EXPECT_GE(DefaultThreads(), 1u);
}

}  // namespace
}  // namespace baton
