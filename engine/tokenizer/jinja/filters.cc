#include "engine/tokenizer/jinja/filters.h"

#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {

absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& input, const Arguments& arguments,
                                  Context* context) {
  Filter filter = FindSequenceFilter(name);
  if (filter == nullptr) filter = FindTextFilter(name);
  if (filter == nullptr) filter = FindNumberFilter(name);
  if (filter == nullptr) return Error("unknown filter '", name.substr(0, 40), "'");
  return filter(input, arguments, context);
}

}  // namespace baton::jinja
