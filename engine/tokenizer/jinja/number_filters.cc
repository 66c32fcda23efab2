#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "common/status_macros.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/filters.h"
#include "engine/tokenizer/jinja/operators.h"

namespace baton::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Digits that a double can tell apart on either side of the point.
constexpr int64_t kMaxPrecision = 300;

// std::from_chars does not take a plus sign.
std::string_view WithoutPlus(std::string_view digits) {
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  return digits;
}

std::optional<double> ParseDouble(std::string_view digits) {
  digits = WithoutPlus(digits);
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Towards zero.
Result IntegerOf(double value, Origin origin) {
  if (!(std::fabs(value) < 9.2e18)) return Error("int: ", value, " is over 64 bits");
  return Value::Int(static_cast<int64_t>(value), origin);
}

Result Int(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("int", arguments, {"default", "base"}));
  ASSIGN_OR_RETURN(const int64_t base, bound.IntegerOr(1, 10));
  if (base < 2 || base > 36) return Error("int: the base ", base, " is not in 2 .. 36");
  const Value fallback = bound.has(0) ? bound[0] : Value::Int(0);
  if (const Float* number = input.floating()) return IntegerOf(number->value, number->origin);
  if (input.integer() != nullptr) return input;
  if (const bool* boolean = input.boolean()) return Value::Int(*boolean);
  if (input.text() == nullptr) return fallback;
  RETURN_IF_ERROR(context->budget.Scan(input.text()->size()));
  const Text text = input.text()->Strip(true, true);
  const std::string_view digits = WithoutPlus(text.bytes());
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, static_cast<int>(base));
  if (error == std::errc() && stopped == end) return Value::Int(value, text.origin());
  if (const std::optional<double> number = ParseDouble(text.bytes()))
    return IntegerOf(*number, text.origin());
  return fallback;
}

Result FloatFilter(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("float", arguments, {"default"}));
  if (input.is_number()) return Value::Double(input.AsDouble(), input.number_origin());
  if (const Text* text = input.text()) {
    RETURN_IF_ERROR(context->budget.Scan(text->size()));
    const Text stripped = text->Strip(true, true);
    if (const auto number = ParseDouble(stripped.bytes())) return Value::Double(*number, stripped.origin());
  }
  return bound.has(0) ? bound[0] : Value::Double(0);
}

Result Bool(const Value& input, const Arguments& arguments, Context*) {
  RETURN_IF_ERROR(BoundArguments::Bind("bool", arguments, {}).status());
  return Value::Boolean(input.Truthy());
}

Result Abs(const Value& input, const Arguments& arguments, Context*) {
  RETURN_IF_ERROR(BoundArguments::Bind("abs", arguments, {}).status());
  if (!input.is_number()) return Error("abs: a number is wanted, not ", input.KindName());
  return ApplySign(/*negative=*/std::signbit(input.AsDouble()), input);
}

// `value` rounded to `precision` decimal digits, halves to the even one: on the decimal form, which is exact.
double RoundHalfEven(double value, int64_t precision) {
  if (precision >= 0) {
    char digits[700];
    const auto [end, unused] = std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::fixed,
                                             static_cast<int>(precision));
    double rounded = 0;
    std::from_chars(digits, end, rounded);
    return rounded;
  }
  const double scale = std::pow(10, -precision);
  return std::nearbyint(value / scale) * scale;
}

Result Round(const Value& input, const Arguments& arguments, Context*) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("round", arguments, {"precision", "method"}));
  if (!input.is_number()) return Error("round: a number is wanted, not ", input.KindName());
  ASSIGN_OR_RETURN(const int64_t precision, bound.IntegerOr(0, 0));
  if (precision < -kMaxPrecision || precision > kMaxPrecision)
    return Error("round: the precision ", precision, " is too large");
  ASSIGN_OR_RETURN(const Text* method, bound.OptionalText(1));
  const std::string_view name = method == nullptr ? "common" : method->bytes();
  const double value = input.AsDouble();
  const double scale = std::pow(10, precision);
  if (name == "common") return MakeFloat(RoundHalfEven(value, precision), input.number_origin());
  if (name == "floor") return MakeFloat(std::floor(value * scale) / scale, input.number_origin());
  if (name == "ceil") return MakeFloat(std::ceil(value * scale) / scale, input.number_origin());
  return Error("round: the method '", name.substr(0, 40), "' is not one of common, floor, ceil");
}

}  // namespace

Filter FindNumberFilter(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, Filter>;
  static const Table* const kTable = new Table{
      {"int", Int}, {"float", FloatFilter}, {"bool", Bool}, {"abs", Abs}, {"round", Round},
  };
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace baton::jinja
