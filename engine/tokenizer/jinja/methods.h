#ifndef BATON_ENGINE_TOKENIZER_JINJA_METHODS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_METHODS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/arguments.h"
#include "engine/tokenizer/jinja/context.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// object.name(arguments) of strings (Python's str methods), dicts (get, items, keys, values), lists (index,
// count) and loops (cycle). INVALID_ARGUMENT for any other method, and for arguments that it does not take.
absl::StatusOr<Value> CallMethod(const Value& object, std::string_view name, const Arguments& arguments,
                                 Context* context);

// The methods of strings.
absl::StatusOr<Value> CallTextMethod(const Value& object, std::string_view name, const Arguments& arguments,
                                     Context* context);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_METHODS_H_
