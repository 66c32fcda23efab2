#include "engine/tokenizer/jinja/arguments.h"

#include <algorithm>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {

absl::StatusOr<BoundArguments> BoundArguments::Bind(std::string_view callee, const Arguments& arguments,
                                                    std::initializer_list<std::string_view> parameters,
                                                    size_t required) {
  BoundArguments bound;
  bound.callee_ = callee;
  bound.names_ = parameters;
  if (arguments.positional.size() > parameters.size()) {
    return Error(callee, ": ", arguments.positional.size(), " arguments, at most ", parameters.size(),
                 " are taken");
  }
  bound.values_ = arguments.positional;
  bound.values_.resize(parameters.size());
  std::vector<bool> given(parameters.size(), false);
  std::fill_n(given.begin(), arguments.positional.size(), true);
  for (const auto& [name, value] : arguments.named) {
    const size_t at = std::find(parameters.begin(), parameters.end(), name) - parameters.begin();
    if (at == parameters.size()) return Error(callee, ": no argument is named '", name, "'");
    if (given[at]) return Error(callee, ": the argument '", name, "' is given twice");
    given[at] = true;
    bound.values_[at] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!given[i]) return Error(callee, ": the argument '", bound.names_[i], "' is missing");
  }
  return bound;
}

absl::Status BoundArguments::WrongType(size_t parameter, std::string_view wanted) const {
  return Error(callee_, ": the argument '", names_[parameter], "' must be ", wanted, ", not ",
               values_[parameter].KindName());
}

absl::StatusOr<int64_t> BoundArguments::IntegerOr(size_t parameter, int64_t fallback) const {
  if (!has(parameter) || values_[parameter].is(Value::Kind::kNone)) return fallback;
  if (const Integer* integer = values_[parameter].integer()) return integer->value;
  return WrongType(parameter, "an integer");
}

absl::StatusOr<bool> BoundArguments::BooleanOr(size_t parameter, bool fallback) const {
  if (!has(parameter)) return fallback;
  if (values_[parameter].is_number()) return values_[parameter].Truthy();
  return WrongType(parameter, "a boolean");
}

absl::StatusOr<const Text*> BoundArguments::OptionalText(size_t parameter) const {
  if (!has(parameter) || values_[parameter].is(Value::Kind::kNone)) return nullptr;
  return RequiredText(parameter);
}

absl::StatusOr<const Text*> BoundArguments::RequiredText(size_t parameter) const {
  if (const Text* text = values_[parameter].text()) return text;
  return WrongType(parameter, "a string");
}

}  // namespace baton::jinja
