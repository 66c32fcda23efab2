#include "engine/tokenizer/jinja/attributes.h"

#include <charconv>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {
namespace {

Value LoopAttribute(const LoopState& loop, std::string_view name) {
  const auto& items = loop.items->items;
  const auto count = static_cast<int64_t>(items.size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::Int(index + 1);
  if (name == "index0") return Value::Int(index);
  if (name == "revindex") return Value::Int(count - index);
  if (name == "revindex0") return Value::Int(count - index - 1);
  if (name == "length") return Value::Int(count);
  if (name == "first") return Value::Boolean(index == 0);
  if (name == "last") return Value::Boolean(index + 1 == count);
  if (name == "previtem" && index > 0) return items[index - 1];
  if (name == "nextitem" && index + 1 < count) return items[index + 1];
  return Value();
}

// `index` code points from the start, or from the end when negative.
absl::StatusOr<Value> CharacterAt(const Text& text, int64_t index, Budget* budget) {
  RETURN_IF_ERROR(budget->Scan(text.size()));
  const std::string_view bytes = text.bytes();
  size_t begin = index < 0 ? bytes.size() : 0;
  for (; index < 0; ++index) {
    if (begin == 0) return Value();
    begin = PreviousCodePoint(bytes, begin);
  }
  for (; index > 0 && begin < bytes.size(); --index) begin += CodePointBytes(bytes, begin);
  if (begin >= bytes.size()) return Value();
  return MakeString(text.Slice(begin, begin + CodePointBytes(bytes, begin)), budget);
}

}  // namespace

absl::StatusOr<Value> GetAttribute(const Value& object, std::string_view name, Budget* budget) {
  const Value* found = nullptr;
  if (const Dict* dict = object.dict()) {
    RETURN_IF_ERROR(budget->Step(dict->entries.size() / 8));
    found = dict->Find(name);
  } else if (const Namespace* space = object.space()) {
    RETURN_IF_ERROR(budget->Step(space->entries.size() / 8));
    found = space->Find(name);
  } else if (const LoopState* loop = object.loop()) {
    return LoopAttribute(*loop, name);
  } else if (object.is(Value::Kind::kUndefined)) {
    return Error("the attribute '", name.substr(0, 40), "' of an undefined value");
  }
  return found == nullptr ? Value() : *found;
}

absl::StatusOr<Value> GetItem(const Value& object, const Value& index, Budget* budget) {
  if (const Text* name = index.text()) return GetAttribute(object, name->bytes(), budget);
  if (object.is(Value::Kind::kUndefined)) return Error("an item of an undefined value");
  if (const Integer* integer = index.integer()) {
    if (const List* list = object.list()) {
      const auto size = static_cast<int64_t>(list->items.size());
      const int64_t at = integer->value < 0 ? integer->value + size : integer->value;
      return at < 0 || at >= size ? Value() : list->items[at];
    }
    if (const Dict* dict = object.dict()) {
      RETURN_IF_ERROR(budget->Step(dict->entries.size() / 8));
      const Value* found = dict->Find(index);
      return found == nullptr ? Value() : *found;
    }
    if (const Text* text = object.text()) return CharacterAt(*text, integer->value, budget);
  }
  return Value();
}

absl::StatusOr<Value> GetPath(const Value& object, std::string_view path, Budget* budget) {
  Value value = object;
  while (true) {
    const size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = error == std::errc() && end == part.data() + part.size();
    if (is_index) {
      ASSIGN_OR_RETURN(value, GetItem(value, Value::Int(index), budget));
    } else {
      ASSIGN_OR_RETURN(value, GetAttribute(value, part, budget));
    }
    RETURN_IF_ERROR(budget->Step());
    if (dot == std::string_view::npos) return value;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace baton::jinja
