#ifndef BATON_ENGINE_TOKENIZER_JINJA_FILTERS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_FILTERS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/arguments.h"
#include "engine/tokenizer/jinja/context.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

using Filter = absl::StatusOr<Value> (*)(const Value& input, const Arguments& arguments, Context* context);

// input | name(arguments). INVALID_ARGUMENT for an unknown filter and for input or arguments that it does not
// take.
absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& input, const Arguments& arguments,
                                  Context* context);

// The three groups of filters; null for a name that is not in the group.
Filter FindTextFilter(std::string_view name);      // on strings, and what prints values as strings
Filter FindNumberFilter(std::string_view name);    // conversions and arithmetic
Filter FindSequenceFilter(std::string_view name);  // on lists and dicts

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_FILTERS_H_
