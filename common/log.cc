#include "common/log.h"

#include <array>
#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/mutex.h"
#include "common/status_macros.h"
#include "common/string_views.h"
#include "spdlog/async_logger.h"
#include "spdlog/details/null_mutex.h"
#include "spdlog/details/thread_pool.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/base_sink.h"

namespace baton {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 2> kStyleNames = {"text", "json"};
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%fZ %l %v";
constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";
// Above every level: nothing is recorded.
constexpr int kNothing = static_cast<int>(kLevelNames.size());

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

std::string FormatEvent(LogStyle style, std::string_view event, std::span<const LogField> fields) {
  return style == LogStyle::kJson ? FormatLogJson(event, fields) : FormatLogText(event, fields);
}

// Writes lines to a stream; used by the pool's one thread. Says how many events were pushed out since it last
// said so.
class StreamSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  StreamSink(LogStyle style, std::FILE* stream) : style_(style), stream_(stream) {}

  // Before the first event.
  void Watch(spdlog::details::thread_pool* pool) { pool_ = pool; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const size_t dropped = pool_->overrun_counter();
    if (dropped > reported_) {
      const LogField fields[] = {{"dropped_events", dropped - reported_}};
      reported_ = dropped;
      const std::string payload = FormatEvent(style_, "log_overflow", fields);
      spdlog::details::log_msg report(message.time, {}, message.logger_name, spdlog::level::warn, payload);
      WriteLine(report);
    }
    WriteLine(message);
  }

  void flush_() override { std::fflush(stream_); }

 private:
  void WriteLine(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::fwrite(line.data(), 1, line.size(), stream_);
  }

  const LogStyle style_;
  std::FILE* const stream_;
  spdlog::details::thread_pool* pool_ = nullptr;
  size_t reported_ = 0;
};

// What a ProcessLog puts in place. The pool is destroyed first: its end writes what is queued.
struct Installed {
  LogStyle style;
  std::shared_ptr<StreamSink> sink;
  std::shared_ptr<spdlog::async_logger> logger;
  std::shared_ptr<spdlog::details::thread_pool> pool;
};

struct State {
  std::atomic<int> threshold = kNothing;
  Mutex mutex;
  std::shared_ptr<Installed> installed ABSL_GUARDED_BY(mutex);

  std::shared_ptr<Installed> Get() {
    MutexLock lock(&mutex);
    return installed;
  }
};

// Never destroyed: threads may still log while the process ends.
State& GlobalState() {
  static State* const state = new State;
  return *state;
}

std::shared_ptr<Installed> Install(const LogOptions& options) {
  auto installed = std::make_shared<Installed>();
  installed->style = options.style;
  installed->sink = std::make_shared<StreamSink>(options.style, options.stream);
  installed->sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      options.style == LogStyle::kJson ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc, "\n"));
  installed->pool = std::make_shared<spdlog::details::thread_pool>(options.queue_events, 1);
  installed->sink->Watch(installed->pool.get());
  installed->logger = std::make_shared<spdlog::async_logger>("baton", installed->sink, installed->pool,
                                                             spdlog::async_overflow_policy::overrun_oldest);
  installed->logger->set_level(spdlog::level::trace);
  return installed;
}

template <typename Enum, size_t kCount>
absl::StatusOr<Enum> ParseName(std::string_view what, std::string_view text,
                               const std::array<std::string_view, kCount>& names) {
  std::string all;
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
    absl::StrAppend(&all, i == 0 ? "" : ", ", AbslView(names[i]));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(AbslView(what), ": \"", AbslView(text), "\" is none of ", all));
}

}  // namespace

absl::StatusOr<LogOptions> ParseLogOptions(std::string_view level, std::string_view format) {
  LogOptions options;
  ASSIGN_OR_RETURN(options.level, ParseName<LogLevel>("log-level", level, kLevelNames));
  ASSIGN_OR_RETURN(options.style, ParseName<LogStyle>("log-format", format, kStyleNames));
  return options;
}

bool LogEnabled(LogLevel level) {
  return static_cast<int>(level) >= GlobalState().threshold.load(std::memory_order_relaxed);
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!LogEnabled(level)) return;
  const std::shared_ptr<Installed> installed = GlobalState().Get();
  if (installed == nullptr) return;
  const std::string payload = FormatEvent(installed->style, event, {fields.begin(), fields.size()});
  // spdlog catches what it throws itself and prints it on stderr.
  installed->logger->log(SpdlogLevel(level), spdlog::string_view_t(payload.data(), payload.size()));
}

absl::StatusOr<std::unique_ptr<ProcessLog>> ProcessLog::Start(const LogOptions& options) {
  State& state = GlobalState();
  std::shared_ptr<Installed> installed;
  try {
    installed = Install(options);
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(absl::StrCat("the log cannot start: ", error.what()));
  }
  MutexLock lock(&state.mutex);
  BATON_CHECK(state.installed == nullptr);
  state.installed = std::move(installed);
  state.threshold.store(static_cast<int>(options.level), std::memory_order_relaxed);
  return std::unique_ptr<ProcessLog>(new ProcessLog(options.stream));
}

ProcessLog::~ProcessLog() {
  State& state = GlobalState();
  state.threshold.store(kNothing, std::memory_order_relaxed);
  std::shared_ptr<Installed> last;
  {
    MutexLock lock(&state.mutex);
    last.swap(state.installed);
  }
  last.reset();
  std::fflush(stream_);
}

uint64_t ProcessLog::dropped_events() const {
  const std::shared_ptr<Installed> installed = GlobalState().Get();
  return installed == nullptr ? 0 : installed->pool->overrun_counter();
}

}  // namespace baton
