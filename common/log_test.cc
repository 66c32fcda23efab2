#include "common/log.h"

#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

using testing::MatchesRegex;

// A log into a temporary file, read after its end.
class LogTest : public testing::Test {
 protected:
  ~LogTest() override { std::fclose(file_); }

  void Start(LogOptions options) {
    options.stream = file_;
    absl::StatusOr<std::unique_ptr<ProcessLog>> log = ProcessLog::Start(options);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  std::vector<std::string> Stop() {
    log_.reset();
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text.push_back(static_cast<char>(c));
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  std::FILE* file_ = std::tmpfile();
  std::unique_ptr<ProcessLog> log_;
};

constexpr char kTime[] = "20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9]{6}Z";

TEST_F(LogTest, TextIsOneLineAnEvent) {
  Start({.level = LogLevel::kDebug});
  Log(LogLevel::kDebug, "start");
  Log(LogLevel::kWarning, "leg_lost", {{"request_id", "r1"}, {"why", "peer\nis gone"}});
  const std::vector<std::string> lines = Stop();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], MatchesRegex(std::string(kTime) + " debug start"));
  EXPECT_THAT(lines[1],
              MatchesRegex(std::string(kTime) + R"( warning leg_lost request_id=r1 why="peer\\nis gone")"));
}

TEST_F(LogTest, JsonReadsBack) {
  Start({.style = LogStyle::kJson});
  Log(LogLevel::kError, "end", {{"traceparent", "00-ab-cd-01"}, {"tokens", 3}, {"bytes", "\xff{}%v"}});
  const std::vector<std::string> lines = Stop();
  ASSERT_EQ(lines.size(), 1u);
  auto json = nlohmann::json::parse(lines[0], nullptr, false);
  ASSERT_TRUE(json.is_object()) << lines[0];
  EXPECT_THAT(json["time"].get<std::string>(), MatchesRegex(kTime));
  json.erase("time");
  EXPECT_EQ(json, nlohmann::json({{"level", "error"},
                                  {"event", "end"},
                                  {"traceparent", "00-ab-cd-01"},
                                  {"tokens", 3},
                                  {"bytes", "\xef\xbf\xbd{}%v"}}));
}

TEST_F(LogTest, LevelsBelowAreDropped) {
  Start({.level = LogLevel::kWarning});
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  EXPECT_TRUE(LogEnabled(LogLevel::kWarning));
  Log(LogLevel::kDebug, "a");
  Log(LogLevel::kInfo, "b");
  Log(LogLevel::kWarning, "c");
  Log(LogLevel::kError, "d");
  EXPECT_EQ(Stop().size(), 2u);
}

TEST_F(LogTest, WithoutALogEventsVanish) {
  EXPECT_FALSE(LogEnabled(LogLevel::kError));
  Log(LogLevel::kError, "nobody listens");
  Start({});
  EXPECT_TRUE(Stop().empty());
  Log(LogLevel::kError, "nobody listens");
}

TEST_F(LogTest, ThreadsLogTogetherAndNothingIsLostWhereThereIsRoom) {
  Start({.queue_events = 4000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) Log(LogLevel::kInfo, "tick", {{"thread", t}, {"i", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log_->dropped_events(), 0u);
  EXPECT_EQ(Stop().size(), 2000u);
}

TEST_F(LogTest, OverflowDropsTheOldestAndIsCounted) {
  // A pipe that nobody reads yet: the writer blocks once its buffer is full, then the queue overflows.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* const stream = fdopen(ends[1], "w");
  ASSERT_EQ(std::setvbuf(stream, nullptr, _IONBF, 0), 0);
  absl::StatusOr<std::unique_ptr<ProcessLog>> log =
      ProcessLog::Start({.style = LogStyle::kJson, .queue_events = 16, .stream = stream});
  ASSERT_TRUE(log.ok());
  constexpr int kEvents = 5000;
  for (int i = 0; i < kEvents; ++i) Log(LogLevel::kInfo, "e", {{"i", i}, {"fill", std::string(100, 'x')}});
  const uint64_t dropped = (*log)->dropped_events();
  EXPECT_GT(dropped, 0u);
  std::string text;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  });
  log->reset();
  std::fclose(stream);
  reader.join();
  close(ends[0]);
  uint64_t reported = 0;
  int written = 0;
  int last = -1;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    if (json["event"] == "log_overflow") {
      reported += json["dropped_events"].get<uint64_t>();
    } else {
      ++written;
      last = json["i"];
    }
  }
  EXPECT_EQ(last, kEvents - 1) << "the newest events stay";
  EXPECT_EQ(written + reported, static_cast<uint64_t>(kEvents));
}

TEST(LogOptionsTest, ParseAndRefuse) {
  const LogOptions options = *ParseLogOptions("error", "json");
  EXPECT_EQ(options.level, LogLevel::kError);
  EXPECT_EQ(options.style, LogStyle::kJson);
  EXPECT_EQ(ParseLogOptions("debug", "text")->level, LogLevel::kDebug);
  EXPECT_EQ(ParseLogOptions("loud", "text").status().message(),
            "log-level: \"loud\" is none of debug, info, warning, error");
  EXPECT_EQ(ParseLogOptions("info", "").status().message(), "log-format: \"\" is none of text, json");
}

}  // namespace
}  // namespace baton
