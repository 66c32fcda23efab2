#ifndef BATON_ENGINE_TOKENIZER_JINJA_OPERATORS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_OPERATORS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/ast.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// The operators of expressions, with Python's meaning: integers have 64 bits (more is an error), / gives a
// float, // and % round down, + joins strings and lists, * repeats strings.

absl::StatusOr<Value> Calculate(ArithmeticOp op, const Value& left, const Value& right, Budget* budget);
absl::StatusOr<bool> Compare(ComparisonOp op, const Value& left, const Value& right, Budget* budget);
absl::StatusOr<Value> ApplySign(bool negative, const Value& operand);

// The text at the left of a chain of + and ~, built in place so that a long chain copies each operand once.
class Concatenation {
 public:
  // Appends when `op` joins strings here: always for ~, for + when both sides are strings. False: nothing was
  // done.
  absl::StatusOr<bool> Append(ArithmeticOp op, const Value& left, const Value& right, Budget* budget);
  bool active() const { return text_.has_value(); }
  // The text so far; inactive afterwards.
  absl::StatusOr<Value> Take(Budget* budget);

 private:
  std::optional<Text> text_;
};

// Where `needle` occurs in `text` at or after `from`, in linear time.
absl::StatusOr<std::optional<size_t>> FindText(std::string_view text, std::string_view needle, size_t from,
                                               Budget* budget);

// value[start:stop:step] of a list or string, by code points. Absent bounds are undefined or none.
absl::StatusOr<Value> SliceValue(const Value& value, const Value& start, const Value& stop, const Value& step,
                                 Budget* budget);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_OPERATORS_H_
