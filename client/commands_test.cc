#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "client/bench_command.h"
#include "client/captured_file.h"
#include "client/chat_command.h"
#include "client/fake_router.h"
#include "client/generate_command.h"
#include "client/status_command.h"
#include "client/top_command.h"
#include "nlohmann/json.hpp"

// The commands, as main runs them, against a router in this process.
namespace baton {
namespace {

class Commands : public testing::Test {
 protected:
  template <typename Options>
  Options Connected() {
    Options options;
    options.connection.server = router_.address();
    options.connection.timeout = absl::Seconds(20);
    return options;
  }

  FakeRouter router_;
  CapturedFile out_;
  CapturedFile err_;
};

TEST_F(Commands, GenerateStreamsTheTextAndItsTimings) {
  auto options = Connected<GenerateOptions>();
  options.prompt = {"Once", "upon"};
  options.request.max_tokens = 4;
  CapturedFile in("not read");
  ASSERT_TRUE(RunGenerate(options, in.get(), out_.get(), err_.get()).ok());
  EXPECT_EQ(out_.Text(), " t0 t1 t2 t3\n");
  EXPECT_NE(err_.Text().find("TTFT     1.50 ms"), std::string::npos);
  ASSERT_EQ(router_.requests().size(), 1u);
  EXPECT_EQ(router_.requests()[0].prompt(), "Once upon");
}

TEST_F(Commands, GenerateReadsStandardInputAndMakesAChat) {
  auto options = Connected<GenerateOptions>();
  options.system = "Be brief.";
  options.quiet = true;
  CapturedFile in("line 1\nline 2");
  ASSERT_TRUE(RunGenerate(options, in.get(), out_.get(), err_.get()).ok());
  EXPECT_EQ(err_.Text(), "");
  const v1::GenerateRequest request = router_.requests().at(0);
  ASSERT_EQ(request.chat().messages_size(), 2);
  EXPECT_EQ(request.chat().messages(0).role(), "system");
  EXPECT_EQ(request.chat().messages(1).role(), "user");
  EXPECT_EQ(request.chat().messages(1).content(), "line 1\nline 2");
}

TEST_F(Commands, GenerateAsJsonIsOneObjectALine) {
  auto options = Connected<GenerateOptions>();
  options.prompt = {"x"};
  options.json = true;
  CapturedFile in;
  ASSERT_TRUE(RunGenerate(options, in.get(), out_.get(), err_.get()).ok());
  std::istringstream lines(out_.Text());
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) EXPECT_EQ(nlohmann::json::parse(line)["index"], count);
  EXPECT_EQ(count, 3);
}

TEST_F(Commands, GeneratePrintsLogprobs) {
  auto options = Connected<GenerateOptions>();
  options.prompt = {"x"};
  options.logprobs = 1;
  options.request.max_tokens = 1;
  CapturedFile in;
  ASSERT_TRUE(RunGenerate(options, in.get(), out_.get(), err_.get()).ok());
  EXPECT_EQ(out_.Text(), "\" t0\" -0.5000\n");
}

TEST_F(Commands, GenerateFailsWithTheRoutersStatus) {
  router_.FailNext(1, grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full: 8 of 8"));
  auto options = Connected<GenerateOptions>();
  options.prompt = {"x"};
  CapturedFile in;
  const absl::Status status = RunGenerate(options, in.get(), out_.get(), err_.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "queue full: 8 of 8");
  EXPECT_EQ(out_.Text(), " t0\n") << "what had come is on a line of its own";
}

TEST_F(Commands, ChatKeepsTheConversation) {
  CapturedFile in("Hi\n\nAgain\n/new\nFresh\n/quit\nnever\n");
  auto options = Connected<ChatOptions>();
  options.system = "S";
  ASSERT_TRUE(RunChat(options, in.get(), out_.get(), err_.get()).ok());
  const auto requests = router_.requests();
  ASSERT_EQ(requests.size(), 3u);
  ASSERT_EQ(requests[1].chat().messages_size(), 4);
  EXPECT_EQ(requests[1].chat().messages(0).content(), "S");
  EXPECT_EQ(requests[1].chat().messages(2).role(), "assistant");
  EXPECT_EQ(requests[1].chat().messages(2).content(), " t0 t1 t2");
  EXPECT_EQ(requests[1].chat().messages(3).content(), "Again");
  EXPECT_EQ(requests[2].chat().messages_size(), 2);
}

TEST_F(Commands, ChatGoesOnAfterAFailure) {
  router_.FailNext(1, grpc::Status(grpc::StatusCode::UNAVAILABLE, "no worker"));
  CapturedFile in("One\nTwo\n");
  ASSERT_TRUE(RunChat(Connected<ChatOptions>(), in.get(), out_.get(), err_.get()).ok());
  EXPECT_NE(err_.Text().find("no worker"), std::string::npos);
  ASSERT_EQ(router_.requests().size(), 2u);
  ASSERT_EQ(router_.requests()[1].chat().messages_size(), 1);
  EXPECT_EQ(router_.requests()[1].chat().messages(0).content(), "Two");
}

TEST_F(Commands, StatusShowsRouterAndWorkers) {
  ASSERT_TRUE(RunStatus(Connected<StatusOptions>(), out_.get()).ok());
  const std::string text = out_.Text();
  EXPECT_EQ(text.rfind("baton 9.9, serving, 2 requests running", 0), 0u) << text;
  EXPECT_NE(text.find("model-of-the-fake"), std::string::npos);
  EXPECT_NE(text.find("fake:1"), std::string::npos);
}

TEST_F(Commands, StatusAsJson) {
  auto options = Connected<StatusOptions>();
  options.json = true;
  ASSERT_TRUE(RunStatus(options, out_.get()).ok());
  EXPECT_EQ(nlohmann::json::parse(out_.Text())["workers"][0]["state"], "WORKER_STATE_SERVING");
}

TEST_F(Commands, StatusOfNobodyIsUnavailable) {
  StatusOptions options;
  options.connection.server = "127.0.0.1:1";
  EXPECT_EQ(RunStatus(options, out_.get()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(Commands, TopNeedsATerminal) {
  EXPECT_EQ(RunTop(Connected<TopOptions>()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Commands, BenchClosedLoad) {
  auto options = Connected<BenchOptions>();
  options.streams = 3;
  options.requests = 20;
  options.warmup = 2;
  options.request.max_tokens = 5;
  options.input_tokens = 9;
  options.output = "json";
  options.slo_ttft_ms = 60'000;
  ASSERT_TRUE(RunBench(options, out_.get(), err_.get()).ok());
  const auto json = nlohmann::json::parse(out_.Text());
  EXPECT_EQ(json["count"], 20);
  EXPECT_EQ(json["statusCodeDistribution"]["OK"], 20);
  EXPECT_EQ(json["baton"]["output_tokens"], 100);
  EXPECT_EQ(json["baton"]["itl_ms"]["count"], 80);
  EXPECT_EQ(json["baton"]["router_ttft_ms"]["p50"], 1.5);
  EXPECT_EQ(json["baton"]["goodput"]["good"], 20);
  const auto requests = router_.requests();
  ASSERT_EQ(requests.size(), 22u);
  EXPECT_LE(router_.most_open(), 3);
  for (const auto& request : requests) {
    EXPECT_EQ(request.tokens().ids_size(), 9);
    EXPECT_TRUE(request.stopping().ignore_eos());
    EXPECT_TRUE(request.sampling().has_temperature());
  }
}

TEST_F(Commands, BenchOpenLoadCountsFailures) {
  router_.FailNext(4, grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining"));
  auto options = Connected<BenchOptions>();
  options.rate = 2000;
  options.requests = 30;
  options.warmup = 0;
  options.request.max_tokens = 2;
  ASSERT_TRUE(RunBench(options, out_.get(), err_.get()).ok());
  const std::string text = out_.Text();
  EXPECT_NE(text.find("30 requests in"), std::string::npos) << text;
  EXPECT_NE(text.find("26 succeeded"), std::string::npos) << text;
  EXPECT_NE(text.find("4 ended with UNAVAILABLE\n  4x draining"), std::string::npos) << text;
}

TEST_F(Commands, BenchFailsWhenNothingSucceeds) {
  router_.FailNext(5, grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining"));
  auto options = Connected<BenchOptions>();
  options.requests = 5;
  options.warmup = 0;
  EXPECT_EQ(RunBench(options, out_.get(), err_.get()).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace baton
