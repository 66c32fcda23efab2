#ifndef BATON_ENGINE_TOKENIZER_JINJA_ARGUMENTS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_ARGUMENTS_H_

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// The evaluated arguments of a call; the names live in the template's tree.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;

  size_t size() const { return positional.size() + named.size(); }
};

// A call's arguments sorted to the parameters of something built in, and read as the types that it wants.
class BoundArguments {
 public:
  // INVALID_ARGUMENT when one of the first `required` parameters is missing, one is given twice or there is
  // none of that name. The parameters are string literals.
  static absl::StatusOr<BoundArguments> Bind(std::string_view callee, const Arguments& arguments,
                                             std::initializer_list<std::string_view> parameters,
                                             size_t required = 0);

  // Undefined when not given.
  const Value& operator[](size_t parameter) const { return values_[parameter]; }
  bool has(size_t parameter) const { return !values_[parameter].is(Value::Kind::kUndefined); }

  // INVALID_ARGUMENT for a value of another type; `fallback` when not given.
  absl::StatusOr<int64_t> IntegerOr(size_t parameter, int64_t fallback) const;
  absl::StatusOr<bool> BooleanOr(size_t parameter, bool fallback) const;
  // Null when not given or none.
  absl::StatusOr<const Text*> OptionalText(size_t parameter) const;
  absl::StatusOr<const Text*> RequiredText(size_t parameter) const;

 private:
  absl::Status WrongType(size_t parameter, std::string_view wanted) const;

  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<Value> values_;
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_ARGUMENTS_H_
