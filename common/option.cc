#include "common/option.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/check.h"

namespace baton {
namespace {

struct ByteUnit {
  const char* suffix;
  int shift;
};
// The largest first, so that a print takes the shortest form.
constexpr ByteUnit kByteUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};

// A number of bytes, as a type of its own for the overloads below.
struct ByteCount {
  uint64_t bytes = 0;
  auto operator<=>(const ByteCount&) const = default;
};

absl::Status Refuse(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" ", why));
}

// absl::SimpleAtoi takes signs and white space; here digits are all there is.
template <typename T>
bool ParseDigits(const std::string& text, T* value) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
         absl::SimpleAtoi(text, value);
}

bool Parse(const std::string& text, uint32_t* value) { return ParseDigits(text, value); }
bool Parse(const std::string& text, uint64_t* value) { return ParseDigits(text, value); }
bool Parse(const std::string& text, double* value) {
  return absl::SimpleAtod(text, value) && !std::isnan(*value);
}
bool Parse(const std::string& text, absl::Duration* value) { return absl::ParseDuration(text, value); }

bool Parse(const std::string& text, ByteCount* value) {
  std::string digits = text;
  int shift = 0;
  for (const ByteUnit& unit : kByteUnits) {
    absl::string_view rest = text;
    if (!absl::ConsumeSuffix(&rest, unit.suffix)) continue;
    digits = std::string(rest);
    shift = unit.shift;
    break;
  }
  if (!ParseDigits(digits, &value->bytes)) return false;
  if (value->bytes > std::numeric_limits<uint64_t>::max() >> shift) return false;
  value->bytes <<= shift;
  return true;
}

std::string Print(uint32_t value) { return absl::StrCat(value); }
std::string Print(uint64_t value) { return absl::StrCat(value); }
std::string Print(double value) { return absl::StrCat(value); }
std::string Print(absl::Duration value) { return absl::FormatDuration(value); }

std::string Print(ByteCount value) {
  for (const ByteUnit& unit : kByteUnits) {
    const uint64_t size = uint64_t{1} << unit.shift;
    if (value.bytes >= size && value.bytes % size == 0)
      return absl::StrCat(value.bytes >> unit.shift, unit.suffix);
  }
  return "0";
}

const char* Shape(uint32_t) { return "a whole number below 2^32"; }
const char* Shape(uint64_t) { return "a whole number below 2^64"; }
const char* Shape(double) { return "a number"; }
const char* Shape(absl::Duration) { return "a duration such as 250ms or 1.5s"; }
const char* Shape(ByteCount) { return "a size such as 4096 or 512MiB"; }

template <typename T>
absl::Status SetInRange(const std::string& text, const Range<T>& range, T* value) {
  T parsed = {};
  if (!Parse(text, &parsed)) return Refuse(text, absl::StrCat("is not ", Shape(parsed)));
  if (parsed < range.min) return Refuse(text, absl::StrCat("is below the minimum ", Print(range.min)));
  if (parsed > range.max) return Refuse(text, absl::StrCat("is above the maximum ", Print(range.max)));
  *value = parsed;
  return absl::OkStatus();
}

template <typename T>
std::string PrintRange(const Range<T>& range) {
  return absl::StrCat(Print(range.min), " to ", Print(range.max));
}

absl::Status SetBool(const std::string& text, bool* value) {
  if (text != "true" && text != "false") return Refuse(text, "is neither true nor false");
  *value = text == "true";
  return absl::OkStatus();
}

absl::Status SetList(const std::vector<std::string>& texts, std::vector<std::string>* value) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    if (text.empty()) continue;
    for (std::string& item : std::vector<std::string>(absl::StrSplit(text, ','))) {
      if (item.empty()) return Refuse(text, "has an empty item");
      items.push_back(std::move(item));
    }
  }
  *value = std::move(items);
  return absl::OkStatus();
}

std::string JoinChoices(const std::vector<std::string>& choices) {
  const std::vector<std::string> head(choices.begin(), choices.end() - 1);
  return head.empty() ? choices.back() : absl::StrCat(absl::StrJoin(head, ", "), " or ", choices.back());
}

}  // namespace

Option::Option(std::string name, std::string unit, std::string help, std::string default_text, Setter set)
    : name_(std::move(name)),
      unit_(std::move(unit)),
      default_text_(std::move(default_text)),
      help_(std::move(help)),
      set_(std::move(set)) {}

template <typename T>
Option Option::Number(std::string name, T* value, Range<T> range, std::string unit, std::string help) {
  BATON_CHECK(range.min <= *value && *value <= range.max);
  Option option(std::move(name), std::move(unit), std::move(help), Print(*value),
                [value, range](const std::vector<std::string>& texts) {
                  return SetInRange(texts.back(), range, value);
                });
  option.limits_ = PrintRange(range);
  return option;
}

Option Option::Text(std::string name, std::string* value, std::string unit, std::string help) {
  return Option(std::move(name), std::move(unit), std::move(help), *value,
                [value](const std::vector<std::string>& texts) {
                  *value = texts.back();
                  return absl::OkStatus();
                });
}

Option Option::Choice(std::string name, std::string* value, std::vector<std::string> choices,
                      std::string help) {
  BATON_CHECK(!choices.empty());
  const std::string limits = JoinChoices(choices);
  Option option(std::move(name), "", std::move(help), *value,
                [value, choices = std::move(choices), limits](const std::vector<std::string>& texts) {
                  for (const std::string& choice : choices) {
                    if (choice != texts.back()) continue;
                    *value = choice;
                    return absl::OkStatus();
                  }
                  return Refuse(texts.back(), absl::StrCat("is not ", limits));
                });
  option.limits_ = limits;
  return option;
}

Option Option::Switch(std::string name, bool* value, std::string help) {
  Option option(std::move(name), "", std::move(help), *value ? "true" : "false",
                [value](const std::vector<std::string>& texts) { return SetBool(texts.back(), value); });
  option.kind_ = Kind::kSwitch;
  return option;
}

Option Option::Count(std::string name, uint32_t* value, Range<uint32_t> range, std::string unit,
                     std::string help) {
  return Number(std::move(name), value, range, std::move(unit), std::move(help));
}

Option Option::Count(std::string name, uint64_t* value, Range<uint64_t> range, std::string unit,
                     std::string help) {
  return Number(std::move(name), value, range, std::move(unit), std::move(help));
}

Option Option::Bytes(std::string name, uint64_t* value, Range<uint64_t> range, std::string help) {
  BATON_CHECK(range.min <= *value && *value <= range.max);
  const Range<ByteCount> bytes = {{range.min}, {range.max}};
  Option option(std::move(name), "bytes", std::move(help), Print(ByteCount{*value}),
                [value, bytes](const std::vector<std::string>& texts) {
                  ByteCount parsed;
                  const absl::Status status = SetInRange(texts.back(), bytes, &parsed);
                  if (status.ok()) *value = parsed.bytes;
                  return status;
                });
  option.limits_ = PrintRange(bytes);
  return option;
}

Option Option::Real(std::string name, double* value, Range<double> range, std::string unit,
                    std::string help) {
  return Number(std::move(name), value, range, std::move(unit), std::move(help));
}

Option Option::Time(std::string name, absl::Duration* value, Range<absl::Duration> range, std::string help) {
  return Number(std::move(name), value, range, "duration", std::move(help));
}

Option Option::List(std::string name, std::vector<std::string>* value, std::string unit, std::string help) {
  return Option(std::move(name), std::move(unit), std::move(help), absl::StrJoin(*value, ","),
                [value](const std::vector<std::string>& texts) { return SetList(texts, value); });
}

Option Option::Texts(std::string name, std::vector<std::string>* value, std::string unit, std::string help) {
  return Option(std::move(name), std::move(unit), std::move(help), absl::StrJoin(*value, ","),
                [value](const std::vector<std::string>& texts) {
                  *value = texts;
                  return absl::OkStatus();
                });
}

Option Option::Arguments(std::string name, std::vector<std::string>* value, std::string help) {
  Option option(std::move(name), "", std::move(help), absl::StrJoin(*value, " "),
                [value](const std::vector<std::string>& texts) {
                  *value = texts;
                  return absl::OkStatus();
                });
  option.kind_ = Kind::kArguments;
  return option;
}

Option Option::WithDefaultText(std::string text) && {
  default_text_ = std::move(text);
  return std::move(*this);
}

}  // namespace baton
