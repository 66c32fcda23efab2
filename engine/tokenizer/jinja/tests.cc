#include "engine/tokenizer/jinja/tests.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/operators.h"

namespace baton::jinja {
namespace {

using Kind = Value::Kind;
// Tests without arguments that only look at the value.
using Predicate = bool (*)(const Value& value);

bool IsCased(const Value& value, std::string (*map)(std::string_view)) {
  return value.text() != nullptr && map(value.text()->bytes()) == value.text()->bytes();
}

Predicate FindPredicate(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, Predicate>;
  static const Table* const kTable = new Table{
      {"defined", [](const Value& v) { return !v.is(Kind::kUndefined); }},
      {"undefined", [](const Value& v) { return v.is(Kind::kUndefined); }},
      {"none", [](const Value& v) { return v.is(Kind::kNone); }},
      {"boolean", [](const Value& v) { return v.is(Kind::kBoolean); }},
      {"true", [](const Value& v) { return v.boolean() != nullptr && *v.boolean(); }},
      {"false", [](const Value& v) { return v.boolean() != nullptr && !*v.boolean(); }},
      {"integer", [](const Value& v) { return v.is(Kind::kInteger); }},
      {"float", [](const Value& v) { return v.is(Kind::kFloat); }},
      {"number", [](const Value& v) { return v.is_number(); }},
      {"string", [](const Value& v) { return v.is(Kind::kString); }},
      {"mapping", [](const Value& v) { return v.is(Kind::kDict); }},
      {"sequence",
       [](const Value& v) { return v.is(Kind::kString) || v.is(Kind::kList) || v.is(Kind::kDict); }},
      {"iterable",
       [](const Value& v) { return v.is(Kind::kString) || v.is(Kind::kList) || v.is(Kind::kDict); }},
      {"callable", [](const Value& v) { return v.is(Kind::kCallable); }},
      {"lower", [](const Value& v) { return IsCased(v, ToLower); }},
      {"upper", [](const Value& v) { return IsCased(v, ToUpper); }},
  };
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

std::optional<ComparisonOp> FindComparison(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, ComparisonOp>;
  static const Table* const kTable = new Table{
      {"eq", ComparisonOp::kEqual},        {"equalto", ComparisonOp::kEqual},
      {"==", ComparisonOp::kEqual},        {"ne", ComparisonOp::kNotEqual},
      {"!=", ComparisonOp::kNotEqual},     {"lt", ComparisonOp::kLess},
      {"lessthan", ComparisonOp::kLess},   {"<", ComparisonOp::kLess},
      {"le", ComparisonOp::kLessEqual},    {"<=", ComparisonOp::kLessEqual},
      {"gt", ComparisonOp::kGreater},      {"greaterthan", ComparisonOp::kGreater},
      {">", ComparisonOp::kGreater},       {"ge", ComparisonOp::kGreaterEqual},
      {">=", ComparisonOp::kGreaterEqual}, {"in", ComparisonOp::kIn},
  };
  const auto found = kTable->find(name);
  if (found == kTable->end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<bool> IsDivisible(std::string_view name, const Value& input, const Value& divisor,
                                 Budget* budget) {
  if (!input.is_number()) return Error("the test '", name, "' of ", input.KindName());
  ASSIGN_OR_RETURN(const Value remainder, Calculate(ArithmeticOp::kModulo, input, divisor, budget));
  return !remainder.Truthy();
}

}  // namespace

absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& input, const Arguments& arguments,
                               Context* context) {
  Budget* const budget = &context->budget;
  if (const Predicate predicate = FindPredicate(name)) {
    RETURN_IF_ERROR(BoundArguments::Bind(name, arguments, {}).status());
    const bool maps_case = name == "lower" || name == "upper";
    if (maps_case && input.text() != nullptr) RETURN_IF_ERROR(budget->Allocate(input.text()->size()));
    return predicate(input);
  }
  if (name == "even" || name == "odd") {
    RETURN_IF_ERROR(BoundArguments::Bind(name, arguments, {}).status());
    ASSIGN_OR_RETURN(const bool even, IsDivisible(name, input, Value::Int(2), budget));
    return even == (name == "even");
  }
  const std::optional<ComparisonOp> op = FindComparison(name);
  if (!op && name != "divisibleby" && name != "sameas")
    return Error("unknown test '", name.substr(0, 40), "'");
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind(name, arguments, {"other"}, 1));
  if (op) return Compare(*op, input, bound[0], budget);
  if (name == "divisibleby") return IsDivisible(name, input, bound[0], budget);
  if (input.kind() != bound[0].kind()) return false;
  return Equal(input, bound[0], budget);
}

}  // namespace baton::jinja
