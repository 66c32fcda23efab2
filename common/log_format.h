#ifndef BATON_COMMON_LOG_FORMAT_H_
#define BATON_COMMON_LOG_FORMAT_H_

#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace baton {

// One key=value of a log event. Keys are fixed texts of the code in snake_case, never "time", "level" or
// "event"; `key` is not copied, the value is. Never a prompt, a token or a text made from them.
class LogField {
 public:
  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, absl::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, const std::string& value) : key_(key), value_(value) {}
  LogField(std::string_view key, const char* value) : key_(key), value_(value) {}
  LogField(std::string_view key, absl::Duration value) : key_(key), value_(absl::FormatDuration(value)) {}
  LogField(std::string_view key, const absl::Status& value) : key_(key), value_(value.ToString()) {}
  LogField(std::string_view key, std::same_as<bool> auto value)
      : key_(key), value_(value ? "true" : "false"), bare_(true) {}
  LogField(std::string_view key, std::integral auto value)
    requires(!std::same_as<decltype(value), bool>)
      : key_(key), value_(std::to_string(value)), bare_(true) {}
  // The shortest digits that read back as the same number.
  LogField(std::string_view key, double value);

  std::string_view key() const { return key_; }
  const std::string& value() const { return value_; }
  // Whether JSON takes the value without quotes: a number, true or false.
  bool bare() const { return bare_; }

 private:
  std::string_view key_;
  std::string value_;
  bool bare_ = false;
};

// event key=value key="value with spaces": always one line of valid UTF-8, whatever bytes the values hold.
std::string FormatLogText(std::string_view event, std::span<const LogField> fields);

// "event":"...","key":value: the members of a JSON object, without its braces.
std::string FormatLogJson(std::string_view event, std::span<const LogField> fields);

// `text` as a JSON string, quotes included; invalid UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace baton

#endif  // BATON_COMMON_LOG_FORMAT_H_
