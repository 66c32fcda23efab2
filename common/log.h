#ifndef BATON_COMMON_LOG_H_
#define BATON_COMMON_LOG_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/log_format.h"

namespace baton {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

enum class LogStyle { kText, kJson };

// Records one event in the process's log:
//
//   Log(LogLevel::kInfo, "request_end", {{"request_id", id}, {"traceparent", trace}, {"tokens", 7}});
//
// `event` is a fixed snake_case word. Returns at once: a thread of its own writes, and events beyond the
// queue's room push the oldest out, counted. Safe from any thread, never throws. Without a ProcessLog the
// event is dropped.
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// Whether an event of `level` would be recorded, for fields that cost something to make.
bool LogEnabled(LogLevel level);

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // Events below it are dropped.
  LogStyle style = LogStyle::kText;
  size_t queue_events = 8192;
  std::FILE* stream = stderr;  // Not owned.
};

// `level` is "debug", "info", "warning" or "error"; `format` is "text" or "json".
absl::StatusOr<LogOptions> ParseLogOptions(std::string_view level, std::string_view format);

// The process's log while it lives: one per process, made by main before and destroyed after what logs. Its
// end writes what is queued.
class ProcessLog {
 public:
  static absl::StatusOr<std::unique_ptr<ProcessLog>> Start(const LogOptions& options);

  ~ProcessLog();
  ProcessLog(const ProcessLog&) = delete;
  ProcessLog& operator=(const ProcessLog&) = delete;

  // Events pushed out of the queue so far. The log itself reports them as event "log_overflow".
  uint64_t dropped_events() const;

 private:
  explicit ProcessLog(std::FILE* stream) : stream_(stream) {}

  std::FILE* const stream_;
};

}  // namespace baton

#endif  // BATON_COMMON_LOG_H_
