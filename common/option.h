#ifndef BATON_COMMON_OPTION_H_
#define BATON_COMMON_OPTION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace baton {

// Both ends belong to it.
template <typename T>
struct Range {
  T min;
  T max;
};

// One option of a program: where its value lives, and all that --help and the docs say about it. The default
// is what the member holds when the option is made, so it is written once, as the member's initialiser. The
// member outlives the option.
//
// Names are lower-case words joined by dashes.
class Option {
 public:
  enum class Kind { kValue, kSwitch, kArguments };

  static Option Text(std::string name, std::string* value, std::string unit, std::string help);
  // One of `choices`.
  static Option Choice(std::string name, std::string* value, std::vector<std::string> choices,
                       std::string help);
  // --name turns it on, --name=false off.
  static Option Switch(std::string name, bool* value, std::string help);
  static Option Count(std::string name, uint32_t* value, Range<uint32_t> range, std::string unit,
                      std::string help);
  static Option Count(std::string name, uint64_t* value, Range<uint64_t> range, std::string unit,
                      std::string help);
  // A whole number with B, KiB, MiB, GiB or TiB behind it, or nothing for bytes.
  static Option Bytes(std::string name, uint64_t* value, Range<uint64_t> range, std::string help);
  static Option Real(std::string name, double* value, Range<double> range, std::string unit,
                     std::string help);
  // As in 250ms, 1.5s, 2m or 1h30m.
  static Option Time(std::string name, absl::Duration* value, Range<absl::Duration> range, std::string help);
  // Separated by commas, or the flag repeated. Empty items are refused; an empty text is an empty list.
  static Option List(std::string name, std::vector<std::string>* value, std::string unit, std::string help);
  // One text for each time that the flag is given, whole: for texts that may hold commas.
  static Option Texts(std::string name, std::vector<std::string>* value, std::string unit, std::string help);
  // What stands on the command line without a flag, in order; one such option per program.
  static Option Arguments(std::string name, std::vector<std::string>* value, std::string help);

  // What help and docs print in place of a default that depends on the machine.
  Option WithDefaultText(std::string text) &&;

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  const std::string& unit() const { return unit_; }  // Of the value, or a word for it: "tokens", "host:port".
  const std::string& limits() const {
    return limits_;
  }  // "1 to 64", "f32, f16 or bf16"; empty where there are none.
  const std::string& default_text() const { return default_text_; }
  const std::string& help() const { return help_; }

  // Parses `text` into the member. INVALID_ARGUMENT naming value and limit leaves the member as it was.
  absl::Status Set(std::string_view text) const { return set_({std::string(text)}); }
  // The same for a flag that was repeated: a list takes all the texts, others the last one. `texts` is not
  // empty.
  absl::Status Set(const std::vector<std::string>& texts) const { return set_(texts); }

 private:
  using Setter = std::function<absl::Status(const std::vector<std::string>& texts)>;

  Option(std::string name, std::string unit, std::string help, std::string default_text, Setter set);
  template <typename T>
  static Option Number(std::string name, T* value, Range<T> range, std::string unit, std::string help);

  std::string name_;
  Kind kind_ = Kind::kValue;
  std::string unit_;
  std::string limits_;
  std::string default_text_;
  std::string help_;
  Setter set_;
};

}  // namespace baton

#endif  // BATON_COMMON_OPTION_H_
