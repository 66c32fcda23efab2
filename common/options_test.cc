#include "common/options.h"

#include <stdlib.h>

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct TestOptions {
  std::string listen = "127.0.0.1:1";
  std::string kv_type = "f32";
  bool reflection = true;
  uint32_t threads = 2;
  uint64_t tokens = 512;
  uint64_t kv_bytes = uint64_t{1} << 30;
  double rate = 0.5;
  absl::Duration delay = absl::Milliseconds(1500);
  std::vector<std::string> workers = {"a:1", "b:2"};
  std::vector<std::string> prompts;
};

std::vector<Option> Describe(TestOptions* o) {
  return {
      Option::Text("listen", &o->listen, "host:port", "Where to listen."),
      Option::Choice("kv-type", &o->kv_type, {"f32", "f16", "bf16"}, "Stored type."),
      Option::Switch("reflection", &o->reflection, "Reflection."),
      Option::Count("threads", &o->threads, {1, 64}, "threads", "Threads.").WithDefaultText("the CPU quota"),
      Option::Count("tokens", &o->tokens, {1, uint64_t{1} << 40}, "tokens", "Tokens."),
      Option::Bytes("kv-bytes", &o->kv_bytes, {1 << 20, uint64_t{1} << 50}, "Size of the KV pool."),
      Option::Real("rate", &o->rate, {0, 1}, "1/s", "Rate."),
      Option::Time("delay", &o->delay, {absl::ZeroDuration(), absl::Hours(1)}, "Delay."),
      Option::List("workers", &o->workers, "host:port", "Workers."),
      Option::Arguments("prompts", &o->prompts, "Prompts.")};
}

const Program kProgram = {"test_service", "BATON_TEST", "Serves tests."};

class OptionsTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "test_service");
    return ParseOptions(kProgram, Describe(&options_), static_cast<int>(arguments.size()), arguments.data());
  }
  std::string Error(const char* argument) {
    const absl::Status status = Parse({argument}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << argument;
    return std::string(status.message());
  }

  TestOptions options_;
};

TEST_F(OptionsTest, DefaultsStay) {
  EXPECT_EQ(*Parse({}), "");
  EXPECT_EQ(options_.threads, 2u);
  EXPECT_THAT(options_.workers, ElementsAre("a:1", "b:2"));
}

TEST_F(OptionsTest, AnEmptyValueDoesNotTakeTheNextWord) {
  ASSERT_EQ(*Parse({"--listen=", "--threads=3", "--workers=", "a prompt"}), "");
  EXPECT_EQ(options_.listen, "");
  EXPECT_EQ(options_.threads, 3u);
  EXPECT_THAT(options_.workers, ElementsAre());
  EXPECT_THAT(options_.prompts, ElementsAre("a prompt"));
  ASSERT_EQ(*Parse({"--threads=4", "--listen="}), "");
  EXPECT_EQ(options_.listen, "");
  EXPECT_THAT(Error("--threads="), HasSubstr("--threads"));
}

TEST_F(OptionsTest, EveryKindIsSet) {
  ASSERT_EQ(*Parse({"--listen", "[::1]:9", "--kv-type=bf16", "--reflection=false", "--threads=64",
                    "--tokens=5000000000", "--kv-bytes=3MiB", "--rate", "1e-1", "--delay=1m30s",
                    "--workers=x:1,y:2", "--workers", "z:3", "first prompt", "second"}),
            "");
  EXPECT_EQ(options_.listen, "[::1]:9");
  EXPECT_EQ(options_.kv_type, "bf16");
  EXPECT_FALSE(options_.reflection);
  EXPECT_EQ(options_.threads, 64u);
  EXPECT_EQ(options_.tokens, 5'000'000'000u);
  EXPECT_EQ(options_.kv_bytes, 3u << 20);
  EXPECT_EQ(options_.rate, 0.1);
  EXPECT_EQ(options_.delay, absl::Seconds(90));
  EXPECT_THAT(options_.workers, ElementsAre("x:1", "y:2", "z:3"));
  EXPECT_THAT(options_.prompts, ElementsAre("first prompt", "second"));
}

TEST_F(OptionsTest, SwitchesTurnOnAndTheLastOneWins) {
  options_.reflection = false;
  ASSERT_TRUE(Parse({"--reflection", "--threads=3", "--threads=4"}).ok());
  EXPECT_TRUE(options_.reflection);
  EXPECT_EQ(options_.threads, 4u);
}

TEST_F(OptionsTest, ErrorsNameOptionValueAndLimit) {
  EXPECT_EQ(Error("--threads=0"), "--threads or BATON_TEST_THREADS: \"0\" is below the minimum 1");
  EXPECT_EQ(Error("--threads=65"), "--threads or BATON_TEST_THREADS: \"65\" is above the maximum 64");
  EXPECT_THAT(Error("--threads=99999999999"), HasSubstr("\"99999999999\" is not a whole number below 2^32"));
  EXPECT_THAT(Error("--threads=-1"), HasSubstr("\"-1\" is not a whole number"));
  EXPECT_THAT(Error("--threads=+1"), HasSubstr("\"+1\" is not a whole number"));
  EXPECT_THAT(Error("--threads= 1"), HasSubstr("\" 1\" is not a whole number"));
  EXPECT_THAT(Error("--tokens=1.5"), HasSubstr("\"1.5\" is not a whole number below 2^64"));
  EXPECT_EQ(Error("--kv-bytes=1KiB"),
            "--kv-bytes or BATON_TEST_KV_BYTES: \"1KiB\" is below the minimum 1MiB");
  EXPECT_THAT(Error("--kv-bytes=1025TiB"), HasSubstr("above the maximum 1024TiB"));
  EXPECT_THAT(Error("--kv-bytes=16777216TiB"), HasSubstr("is not a size such as 4096 or 512MiB"));
  EXPECT_THAT(Error("--kv-bytes=1GB"), HasSubstr("is not a size"));
  EXPECT_THAT(Error("--kv-bytes=MiB"), HasSubstr("is not a size"));
  EXPECT_THAT(Error("--rate=nan"), HasSubstr("\"nan\" is not a number"));
  EXPECT_THAT(Error("--rate=inf"), HasSubstr("\"inf\" is above the maximum 1"));
  EXPECT_THAT(Error("--delay=5"), HasSubstr("\"5\" is not a duration such as 250ms or 1.5s"));
  EXPECT_THAT(Error("--delay=-1s"), HasSubstr("\"-1s\" is below the minimum 0"));
  EXPECT_THAT(Error("--delay=inf"), HasSubstr("\"inf\" is above the maximum 1h"));
  EXPECT_THAT(Error("--kv-type=f64"), HasSubstr("\"f64\" is not f32, f16 or bf16"));
  EXPECT_THAT(Error("--reflection=maybe"), HasSubstr("\"maybe\" is neither true nor false"));
  EXPECT_THAT(Error("--workers=a,,b"), HasSubstr("\"a,,b\" has an empty item"));
  EXPECT_THAT(Error("--unknown=1"), HasSubstr("--unknown"));
  EXPECT_THAT(Error("--listen"), HasSubstr("--listen"));
  EXPECT_EQ(options_.threads, 2u);
  EXPECT_EQ(options_.kv_bytes, uint64_t{1} << 30);
}

TEST_F(OptionsTest, TheEnvironmentCountsWhereNoFlagIsGiven) {
  ASSERT_EQ(setenv("BATON_TEST_KV_BYTES", "2GiB", 1), 0);
  ASSERT_EQ(setenv("BATON_TEST_THREADS", "7", 1), 0);
  ASSERT_EQ(setenv("BATON_TEST_WORKERS", "c:3,d:4", 1), 0);
  ASSERT_EQ(setenv("BATON_TEST_REFLECTION", "false", 1), 0);
  ASSERT_TRUE(Parse({"--threads=8"}).ok());
  EXPECT_EQ(options_.kv_bytes, uint64_t{2} << 30);
  EXPECT_EQ(options_.threads, 8u);
  EXPECT_THAT(options_.workers, ElementsAre("c:3", "d:4"));
  EXPECT_FALSE(options_.reflection);
  ASSERT_EQ(setenv("BATON_TEST_THREADS", "x", 1), 0);
  EXPECT_EQ(Parse({}).status().message(),
            "--threads or BATON_TEST_THREADS: \"x\" is not a whole number below 2^32");
  for (const char* name : {"KV_BYTES", "THREADS", "WORKERS", "REFLECTION"}) {
    unsetenv((std::string("BATON_TEST_") + name).c_str());
  }
}

TEST_F(OptionsTest, HelpTellsDefaultsUnitsLimitsAndVariables) {
  const absl::StatusOr<std::string> help = Parse({"--help"});
  ASSERT_TRUE(help.ok()) << help.status();
  EXPECT_THAT(*help, HasSubstr("Usage: test_service [options] prompts...\n\nServes tests.\n"));
  EXPECT_THAT(*help,
              HasSubstr("  --kv-bytes <bytes>\n      Size of the KV pool. [default 1GiB; 1MiB to 1024TiB; "
                        "BATON_TEST_KV_BYTES]\n"));
  EXPECT_THAT(*help, HasSubstr("[default the CPU quota; 1 to 64; BATON_TEST_THREADS]"));
  EXPECT_THAT(*help, HasSubstr("  --reflection\n      Reflection. [default true; BATON_TEST_REFLECTION]\n"));
  EXPECT_THAT(*help, HasSubstr("default 1.5s; 0 to 1h"));
}

TEST_F(OptionsTest, VersionIsTheProducts) {
  EXPECT_EQ(*Parse({"--version"}), "test_service (baton) 0.1.0\n");
}

TEST_F(OptionsTest, MarkdownIsATable) {
  const std::string markdown = OptionsMarkdown(kProgram, Describe(&options_));
  EXPECT_THAT(markdown, HasSubstr("## test_service\n\nServes tests.\n\n| Option | Unit | Default |"));
  EXPECT_THAT(markdown,
              HasSubstr("| `--kv-bytes` | bytes | `1GiB` | 1MiB to 1024TiB | `BATON_TEST_KV_BYTES` | Size of "
                        "the KV pool. |\n"));
}

}  // namespace
}  // namespace baton
