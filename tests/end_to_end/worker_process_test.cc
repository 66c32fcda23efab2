#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "common/check.h"
#include "gtest/gtest.h"
#include "tests/support/leg_client.h"
#include "tests/support/leg_requests.h"
#include "tests/support/tiny_model.h"

extern char** environ;

namespace baton {
namespace {

// A program with its standard output and error in one pipe. Killed when destroyed.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> arguments) {
    int ends[2];
    BATON_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    BATON_CHECK(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~ChildProcess() {
    if (pid_ != 0) {
      Signal(SIGKILL);
      Wait();
    }
    std::fclose(output_);
  }

  // The next line that holds `word`; empty when the output ends first.
  std::string LineWith(const std::string& word) {
    char line[4096];
    while (std::fgets(line, sizeof(line), output_) != nullptr) {
      if (std::string(line).find(word) != std::string::npos) return line;
    }
    return "";
  }
  void Signal(int number) { kill(pid_, number); }
  // Its exit code, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    BATON_CHECK(waitpid(std::exchange(pid_, 0), &status, 0) > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

std::string Model() { return WriteTinyModel(Architecture::kLlama, 7, testing::TempDir()); }

// "... address=127.0.0.1:41234 ..." -> "127.0.0.1:41234"
std::string AddressIn(const std::string& ready) {
  const size_t begin = ready.find("address=") + 8;
  return ready.substr(begin, ready.find_first_of(" \n", begin) - begin);
}

class WorkerProcessTest : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<std::string> Command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GetParam() + "_service/baton_" + GetParam());
    return arguments;
  }
};

TEST_P(WorkerProcessTest, SaysThatItIsReadyServesAndDrains) {
  ChildProcess child(Command({"--model=" + Model(), "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                              "--kv-memory=8MiB", "--threads=1"}));
  const std::string loaded = child.LineWith("model_loaded");
  EXPECT_NE(loaded.find("kv_capacity_tokens="), std::string::npos) << loaded;
  const std::string ready = child.LineWith(" ready ");
  ASSERT_FALSE(ready.empty());
  WorkerClient worker(AddressIn(ready));
  EXPECT_EQ(worker.Info().model().name(), "tiny-llama");
  EXPECT_TRUE(worker.AwaitIdle());
  child.Signal(SIGTERM);
  EXPECT_FALSE(child.LineWith("stopped").empty());
  EXPECT_EQ(child.Wait(), 0);
}

TEST_P(WorkerProcessTest, ASecondSignalDoesNotWaitForRunningWork) {
  ChildProcess child(Command({"--model=" + Model(), "--listen=127.0.0.1:0", "--metrics-listen", "",
                              "--kv-memory=8MiB", "--threads=1"}));
  const std::string ready = child.LineWith(" ready ");
  ASSERT_FALSE(ready.empty());
  WorkerClient worker(AddressIn(ready));
  const auto leg = worker.Decode(MakeHandoffRequest(1, LetterPrompt(20), 8, "nobody"));
  if (GetParam() == "decode") {
    ASSERT_TRUE(leg->Next().has_value());
  }
  child.Signal(SIGTERM);
  EXPECT_FALSE(child.LineWith("signal").empty());
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_FALSE(leg->Finish().ok());
}

TEST_P(WorkerProcessTest, AModelThatIsMissingOrNoModelIsAClearFailure) {
  ChildProcess missing(Command({"--model=/nowhere/model.gguf"}));
  EXPECT_FALSE(missing.LineWith("model").empty());
  EXPECT_EQ(missing.Wait(), 1);

  const std::string path = testing::TempDir() + "/malformed.gguf";
  std::ofstream(path) << "this is no model";
  ChildProcess malformed(Command({"--model=" + path}));
  EXPECT_FALSE(malformed.LineWith("baton_" + GetParam() + ": ").empty());
  EXPECT_EQ(malformed.Wait(), 1);

  ChildProcess none(Command({}));
  EXPECT_FALSE(none.LineWith("--model").empty());
  EXPECT_EQ(none.Wait(), 1);
}

TEST_P(WorkerProcessTest, RefusesOptionsThatItDoesNotUnderstand) {
  for (const char* option : {"--block-tokens=0", "--kv-type=q4", "--no-such-option", "--step-target=1h"}) {
    ChildProcess child(Command({"--model=" + Model(), option}));
    EXPECT_FALSE(child.LineWith("baton_" + GetParam() + ": ").empty()) << option;
    EXPECT_EQ(child.Wait(), 1) << option;
  }
  ChildProcess transport(Command({"--model=" + Model(), "--transports=carrier-pigeon"}));
  EXPECT_FALSE(transport.LineWith("grpc").empty());
  EXPECT_EQ(transport.Wait(), 1);
}

TEST_P(WorkerProcessTest, ExplainsItself) {
  ChildProcess help(Command({"--help"}));
  EXPECT_FALSE(help.LineWith("--kv-memory").empty());
  EXPECT_EQ(help.Wait(), 0);
  ChildProcess version(Command({"--version"}));
  EXPECT_FALSE(version.LineWith(".").empty());
  EXPECT_EQ(version.Wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Roles, WorkerProcessTest, testing::Values("prefill", "decode"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace baton
