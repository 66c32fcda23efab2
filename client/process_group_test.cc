#include "client/process_group.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "client/captured_file.h"

namespace baton {
namespace {

PlannedProcess Shell(const std::string& name, const std::string& script) {
  PlannedProcess process;
  process.name = name;
  process.arguments = {"-c", script};
  return process;
}

// Waits until the process has ended; false after ten seconds.
bool WaitForEnd(pid_t pid) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) return true;  // Gone and collected already.
  pollfd watched = {handle, POLLIN, 0};
  const int ready = poll(&watched, 1, 10'000);
  close(handle);
  return ready == 1;
}

TEST(ProcessGroup, PrefixesEveryLineAndReportsADeath) {
  CapturedFile out;
  ProcessGroup group(out.get());
  ASSERT_TRUE(group.Start(Shell("waits", "exec sleep 100"), "/bin/sh").ok());
  ASSERT_TRUE(group.Start(Shell("ends", "echo one; echo two >&2; printf three; exit 5"), "/bin/sh").ok());
  const auto event = group.Supervise(absl::Seconds(10), [] { return false; });
  ASSERT_FALSE(event.ok());
  EXPECT_EQ(event.status().message(), "ends ended by itself: exit status 5");
  group.Stop(absl::Seconds(10));
  EXPECT_EQ(out.Text(), "ends  | one\nends  | two\nends  | three\n");
}

TEST(ProcessGroup, EndsWhenItIsDone) {
  CapturedFile out;
  ProcessGroup group(out.get());
  ASSERT_TRUE(group.Start(Shell("a", "exec sleep 100"), "/bin/sh").ok());
  const auto event = group.Supervise(absl::Milliseconds(1), [] { return true; });
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(*event, ProcessGroup::Event::kDone);
}

TEST(ProcessGroup, ASignalInterruptsAndStopAsksPolitely) {
  CapturedFile out;
  ProcessGroup group(out.get());
  ASSERT_TRUE(
      group
          .Start(Shell("polite", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"),
                 "/bin/sh")
          .ok());
  bool asked = false;
  const auto event = group.Supervise(absl::Milliseconds(20), [&] {
    if (!asked && !out.Text().empty()) asked = kill(getpid(), SIGTERM) == 0;
    return false;
  });
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(*event, ProcessGroup::Event::kInterrupted);
  group.Stop(absl::Seconds(10));
  EXPECT_EQ(out.Text(), "polite | ready\npolite | bye\n");
}

TEST(ProcessGroup, StopKillsWhatDoesNotListen) {
  CapturedFile out;
  ProcessGroup group(out.get());
  ASSERT_TRUE(
      group.Start(Shell("deaf", "trap '' TERM; echo ready; while :; do sleep 0.01; done"), "/bin/sh").ok());
  ASSERT_TRUE(group.Supervise(absl::Milliseconds(5), [&] { return !out.Text().empty(); }).ok());
  group.Stop(absl::Milliseconds(50));
  EXPECT_NE(out.Text().find("deaf did not end in time"), std::string::npos);
}

TEST(ChildProcess, SaysWhatCannotBeRun) {
  const auto child = ChildProcess::Start("x", "/nonexistent/program", {}, {});
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(child.status().message().find("/nonexistent/program"), absl::string_view::npos);
}

TEST(ChildProcess, RunsOnItsCoresAlone) {
  const int core = sched_getcpu();
  const auto child =
      ChildProcess::Start("x", "/bin/sh", {"-c", "grep Cpus_allowed_list /proc/self/status"}, {core});
  ASSERT_TRUE(child.ok());
  std::vector<std::string> lines;
  while ((*child)->output() >= 0) {
    pollfd watched = {(*child)->output(), POLLIN, 0};
    ASSERT_EQ(poll(&watched, 1, 10'000), 1);
    for (std::string& line : (*child)->ReadLines()) lines.push_back(std::move(line));
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "Cpus_allowed_list:\t" + std::to_string(core));
}

// A starter that is killed outright takes its children with it.
TEST(ChildProcess, DiesWithItsStarter) {
  int ids[2];
  ASSERT_EQ(pipe(ids), 0);
  const pid_t starter = fork();
  if (starter == 0) {
    const auto child = ChildProcess::Start("x", "/bin/sh", {"-c", "echo $$; exec sleep 1000"}, {});
    if (!child.ok()) _exit(1);
    std::vector<std::string> lines;
    while (lines.empty()) {
      pollfd watched = {(*child)->output(), POLLIN, 0};
      poll(&watched, 1, 10'000);
      lines = (*child)->ReadLines();
    }
    const pid_t id = std::atoi(lines[0].c_str());
    if (write(ids[1], &id, sizeof(id)) != sizeof(id)) _exit(1);
    pause();
    _exit(1);
  }
  pid_t child = 0;
  ASSERT_EQ(read(ids[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_EQ(kill(child, 0), 0);
  kill(starter, SIGKILL);
  waitpid(starter, nullptr, 0);
  EXPECT_TRUE(WaitForEnd(child));
  close(ids[0]);
  close(ids[1]);
}

}  // namespace
}  // namespace baton
