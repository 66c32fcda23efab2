#ifndef BATON_ENGINE_TOKENIZER_JINJA_ATTRIBUTES_H_
#define BATON_ENGINE_TOKENIZER_JINJA_ATTRIBUTES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// object.name: an entry of a dict or namespace, or a variable of a loop; undefined when there is none.
// INVALID_ARGUMENT when `object` itself is undefined.
absl::StatusOr<Value> GetAttribute(const Value& object, std::string_view name, Budget* budget);

// object[index]: an item of a list or string, counted from the end when negative, or an attribute.
absl::StatusOr<Value> GetItem(const Value& object, const Value& index, Budget* budget);

// object.a.b.0 for "a.b.0", as the attribute arguments of filters have it.
absl::StatusOr<Value> GetPath(const Value& object, std::string_view path, Budget* budget);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_ATTRIBUTES_H_
