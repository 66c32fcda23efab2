#include "engine/tokenizer/jinja/operators.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/format.h"

namespace baton::jinja {
namespace {

std::string_view Spelling(ArithmeticOp op) {
  static constexpr std::string_view kSpellings[] = {"+", "-", "~", "*", "/", "//", "%", "**"};
  return kSpellings[static_cast<int>(op)];
}

absl::Status Overflow(ArithmeticOp op) { return Error("the result of '", Spelling(op), "' is over 64 bits"); }

int64_t AsInt(const Value& value) {
  if (const bool* boolean = value.boolean()) return *boolean;
  return value.integer()->value;
}

absl::StatusOr<int64_t> IntegerPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      return Overflow(ArithmeticOp::kPower);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return Overflow(ArithmeticOp::kPower);
  }
  return result;
}

// `b` is not 0.
absl::StatusOr<int64_t> FloorDivide(int64_t a, int64_t b) {
  if (b == -1 && a == INT64_MIN) return Overflow(ArithmeticOp::kFloorDivide);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

absl::StatusOr<Value> CalculateIntegers(ArithmeticOp op, int64_t a, int64_t b, Origin origin) {
  int64_t result = 0;
  switch (op) {
    case ArithmeticOp::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return Overflow(op);
      break;
    case ArithmeticOp::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return Overflow(op);
      break;
    case ArithmeticOp::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return Overflow(op);
      break;
    case ArithmeticOp::kFloorDivide: {
      ASSIGN_OR_RETURN(result, FloorDivide(a, b));
      break;
    }
    case ArithmeticOp::kModulo: {
      if (b == -1) break;  // 0, also where the quotient would overflow
      ASSIGN_OR_RETURN(const int64_t quotient, FloorDivide(a, b));
      result = a - quotient * b;
      break;
    }
    case ArithmeticOp::kPower: {
      ASSIGN_OR_RETURN(result, IntegerPower(a, b));
      break;
    }
    case ArithmeticOp::kDivide:
    case ArithmeticOp::kConcatenate:
      return Error("'", Spelling(op), "' does not give an integer");
  }
  return Value::Int(result, origin);
}

absl::StatusOr<Value> CalculateFloats(ArithmeticOp op, double a, double b, Origin origin) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return MakeFloat(a + b, origin);
    case ArithmeticOp::kSubtract:
      return MakeFloat(a - b, origin);
    case ArithmeticOp::kMultiply:
      return MakeFloat(a * b, origin);
    case ArithmeticOp::kDivide:
      return MakeFloat(a / b, origin);
    case ArithmeticOp::kFloorDivide:
      return MakeFloat(std::floor(a / b), origin);
    case ArithmeticOp::kModulo: {
      const double remainder = std::fmod(a, b);
      return MakeFloat(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder, origin);
    }
    case ArithmeticOp::kPower:
      return MakeFloat(std::pow(a, b), origin);
    case ArithmeticOp::kConcatenate:
      break;
  }
  return Error("'", Spelling(op), "' does not give a float");
}

absl::StatusOr<Value> CalculateNumbers(ArithmeticOp op, const Value& left, const Value& right) {
  const Origin origin = Either(left.number_origin(), right.number_origin());
  const bool divides =
      op == ArithmeticOp::kDivide || op == ArithmeticOp::kFloorDivide || op == ArithmeticOp::kModulo;
  if (divides && right.AsDouble() == 0) return Error("division by zero");
  const bool integers = left.floating() == nullptr && right.floating() == nullptr &&
                        op != ArithmeticOp::kDivide && !(op == ArithmeticOp::kPower && right.AsDouble() < 0);
  if (integers) return CalculateIntegers(op, AsInt(left), AsInt(right), origin);
  return CalculateFloats(op, left.AsDouble(), right.AsDouble(), origin);
}

absl::StatusOr<Value> Repeat(const Text& text, int64_t times, Budget* budget) {
  times = std::max<int64_t>(times, 0);
  if (!text.empty() && static_cast<uint64_t>(times) > kMaxTextBytes / text.size()) {
    return Error("a string of ", text.size(), " bytes, repeated ", times, " times, is over the limit of ",
                 kMaxTextBytes, " bytes");
  }
  Text repeated;
  RETURN_IF_ERROR(budget->Scan(text.size() * times));
  for (int64_t i = 0; i < times && !text.empty(); ++i) repeated.Append(text);
  return MakeString(std::move(repeated), budget);
}

absl::StatusOr<bool> Contains(const Value& container, const Value& item, Budget* budget) {
  if (const List* list = container.list()) {
    for (const Value& other : list->items) {
      ASSIGN_OR_RETURN(const bool same, Equal(item, other, budget));
      if (same) return true;
    }
    return false;
  }
  if (container.is(Value::Kind::kUndefined)) return false;
  const Text* key = item.text();
  if (const Text* text = container.text(); text != nullptr && key != nullptr) {
    ASSIGN_OR_RETURN(const auto found, FindText(text->bytes(), key->bytes(), 0, budget));
    return found.has_value();
  }
  if (const Dict* dict = container.dict()) {
    RETURN_IF_ERROR(budget->Step(1 + dict->entries.size() / 8));
    return dict->Find(item) != nullptr;
  }
  return Error("'in' between ", item.KindName(), " and ", container.KindName());
}

// Python's rules for one bound of a slice.
absl::StatusOr<int64_t> SliceBound(const Value& bound, int64_t size, int64_t absent, bool backwards) {
  if (bound.is(Value::Kind::kUndefined) || bound.is(Value::Kind::kNone)) return absent;
  if (bound.integer() == nullptr) return Error("the bound of a slice is ", bound.KindName());
  int64_t value = bound.integer()->value;
  if (value < 0) value = std::max<int64_t>(value + size, backwards ? -1 : 0);
  return std::min(value, backwards ? size - 1 : size);
}

// Larger steps than any value has items do the same as the largest.
absl::StatusOr<int64_t> SliceStep(const Value& step) {
  if (step.is(Value::Kind::kUndefined) || step.is(Value::Kind::kNone)) return 1;
  if (step.integer() == nullptr) return Error("the step of a slice is ", step.KindName());
  if (step.integer()->value == 0) return Error("the step of a slice is zero");
  constexpr int64_t kLargest = kMaxTextBytes;
  return std::clamp(step.integer()->value, -kLargest, kLargest);
}

}  // namespace

absl::StatusOr<Value> Calculate(ArithmeticOp op, const Value& left, const Value& right, Budget* budget) {
  if (left.is_number() && right.is_number()) return CalculateNumbers(op, left, right);
  if (op == ArithmeticOp::kMultiply) {
    if (left.text() != nullptr && right.integer() != nullptr) {
      return Repeat(*left.text(), right.integer()->value, budget);
    }
    if (left.integer() != nullptr && right.text() != nullptr) {
      return Repeat(*right.text(), left.integer()->value, budget);
    }
  }
  if (op == ArithmeticOp::kAdd && left.list() != nullptr && right.list() != nullptr) {
    std::vector<Value> items = left.list()->items;
    items.insert(items.end(), right.list()->items.begin(), right.list()->items.end());
    return MakeList(std::move(items), budget);
  }
  return Error("'", Spelling(op), "' between ", left.KindName(), " and ", right.KindName());
}

absl::StatusOr<bool> Compare(ComparisonOp op, const Value& left, const Value& right, Budget* budget) {
  switch (op) {
    case ComparisonOp::kEqual:
      return Equal(left, right, budget);
    case ComparisonOp::kNotEqual: {
      ASSIGN_OR_RETURN(const bool equal, Equal(left, right, budget));
      return !equal;
    }
    case ComparisonOp::kIn:
      return Contains(right, left, budget);
    case ComparisonOp::kNotIn: {
      ASSIGN_OR_RETURN(const bool contains, Contains(right, left, budget));
      return !contains;
    }
    default:
      break;
  }
  ASSIGN_OR_RETURN(const int order, Order(left, right, /*case_sensitive=*/true, budget));
  switch (op) {
    case ComparisonOp::kLess:
      return order < 0;
    case ComparisonOp::kLessEqual:
      return order <= 0;
    case ComparisonOp::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

absl::StatusOr<Value> ApplySign(bool negative, const Value& operand) {
  if (!operand.is_number()) return Error("the sign of ", operand.KindName());
  if (!negative) return operand.boolean() != nullptr ? Value::Int(AsInt(operand)) : operand;
  if (const Float* number = operand.floating()) return Value::Double(-number->value, number->origin);
  return CalculateIntegers(ArithmeticOp::kSubtract, 0, AsInt(operand), operand.number_origin());
}

absl::StatusOr<bool> Concatenation::Append(ArithmeticOp op, const Value& left, const Value& right,
                                           Budget* budget) {
  const bool left_is_text = active() || left.text() != nullptr;
  const bool joins = op == ArithmeticOp::kConcatenate ||
                     (op == ArithmeticOp::kAdd && left_is_text && right.text() != nullptr);
  if (!joins) return false;
  if (!active()) {
    ASSIGN_OR_RETURN(text_, Printed(left, budget));
  }
  RETURN_IF_ERROR(AppendPrinted(right, &*text_, budget));
  return true;
}

absl::StatusOr<Value> Concatenation::Take(Budget* budget) {
  absl::StatusOr<Value> value = MakeString(*std::move(text_), budget);
  text_.reset();
  return value;
}

absl::StatusOr<std::optional<size_t>> FindText(std::string_view text, std::string_view needle, size_t from,
                                               Budget* budget) {
  std::optional<size_t> position;
  const void* const found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found != nullptr) position = static_cast<const char*>(found) - text.data();
  RETURN_IF_ERROR(budget->Scan(position.value_or(text.size()) - from + needle.size()));
  return position;
}

absl::StatusOr<Value> SliceValue(const Value& value, const Value& start, const Value& stop, const Value& step,
                                 Budget* budget) {
  if (value.list() == nullptr && value.text() == nullptr) return Error(value.KindName(), " cannot be sliced");
  ASSIGN_OR_RETURN(const int64_t by, SliceStep(step));
  const bool backwards = by < 0;

  const Text* const text = value.text();
  std::vector<uint32_t> offsets;  // of the code points, and of the end
  if (text != nullptr) {
    RETURN_IF_ERROR(budget->Allocate(text->size() * sizeof(uint32_t)));
    for (size_t at = 0; at < text->size(); at += CodePointBytes(text->bytes(), at)) offsets.push_back(at);
    offsets.push_back(text->size());
  }
  const int64_t size = text != nullptr ? offsets.size() - 1 : value.list()->items.size();
  ASSIGN_OR_RETURN(int64_t at, SliceBound(start, size, backwards ? size - 1 : 0, backwards));
  ASSIGN_OR_RETURN(const int64_t end, SliceBound(stop, size, backwards ? -1 : size, backwards));

  if (text != nullptr && by == 1) {
    return MakeString(at < end ? text->Slice(offsets[at], offsets[end]) : Text(), budget);
  }
  std::vector<Value> items;
  Text characters;
  for (; backwards ? at > end : at < end; at += by) {
    RETURN_IF_ERROR(budget->Step());
    if (text != nullptr) {
      characters.Append(*text, offsets[at], offsets[at + 1]);
    } else {
      items.push_back(value.list()->items[at]);
    }
  }
  return text != nullptr ? MakeString(std::move(characters), budget) : MakeList(std::move(items), budget);
}

}  // namespace baton::jinja
