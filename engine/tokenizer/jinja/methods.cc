#include "engine/tokenizer/jinja/methods.h"

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/attributes.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {
namespace {

using Result = absl::StatusOr<Value>;

absl::Status NoMethod(const Value& object, std::string_view name) {
  return Error(object.KindName(), " has no method '", name.substr(0, 40), "'");
}

Result CallDictMethod(const Value& object, std::string_view name, const Arguments& arguments,
                      Context* context) {
  const Dict& dict = *object.dict();
  if (name == "get") {
    ASSIGN_OR_RETURN(const BoundArguments bound,
                     BoundArguments::Bind("get", arguments, {"key", "default"}, 1));
    RETURN_IF_ERROR(context->budget.Step(dict.entries.size() / 8));
    if (const Value* found = dict.Find(bound[0])) return *found;
    return bound.has(1) ? bound[1] : Value::None();
  }
  if (name != "items" && name != "keys" && name != "values") return NoMethod(object, name);
  RETURN_IF_ERROR(BoundArguments::Bind(name, arguments, {}).status());
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    Value item = name == "keys" ? key : value;
    if (name == "items") {
      ASSIGN_OR_RETURN(item, MakeList({key, value}, &context->budget));
    }
    items.push_back(std::move(item));
  }
  return MakeList(std::move(items), &context->budget);
}

Result CallListMethod(const Value& object, std::string_view name, const Arguments& arguments,
                      Context* context) {
  if (name != "index" && name != "count") return NoMethod(object, name);
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind(name, arguments, {"item"}, 1));
  const std::vector<Value>& items = object.list()->items;
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, Equal(items[i], bound[0], &context->budget));
    if (same && name == "index") return Value::Int(i);
    count += same;
  }
  if (name == "index") return Error("index: the item is not in the list");
  return Value::Int(count);
}

Result CallLoopMethod(const Value& object, std::string_view name, const Arguments& arguments) {
  if (name != "cycle") return NoMethod(object, name);
  if (arguments.positional.empty() || !arguments.named.empty()) return Error("cycle: items are wanted");
  return arguments.positional[object.loop()->index % arguments.positional.size()];
}

}  // namespace

absl::StatusOr<Value> CallMethod(const Value& object, std::string_view name, const Arguments& arguments,
                                 Context* context) {
  if (object.text() != nullptr) return CallTextMethod(object, name, arguments, context);
  if (object.dict() != nullptr) return CallDictMethod(object, name, arguments, context);
  if (object.list() != nullptr) return CallListMethod(object, name, arguments, context);
  if (object.loop() != nullptr) return CallLoopMethod(object, name, arguments);
  return NoMethod(object, name);
}

}  // namespace baton::jinja
