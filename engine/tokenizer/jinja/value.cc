#include "engine/tokenizer/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {
namespace {

template <typename Predicate>
const Value* FindEntry(const std::vector<Dict::Entry>& entries, const Predicate& is_key) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Dict::Entry& entry) { return is_key(entry.first); });
  return found == entries.end() ? nullptr : &found->second;
}

auto IsText(std::string_view bytes) {
  return [bytes](const Value& key) { return key.text() != nullptr && key.text()->bytes() == bytes; };
}

absl::Status CheckDepth(int depth) {
  if (depth <= kMaxValueDepth) return absl::OkStatus();
  return Error("lists nest deeper than the limit of ", kMaxValueDepth);
}

int Sign(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

double Value::AsDouble() const {
  if (const bool* value = boolean()) return *value ? 1 : 0;
  if (const Integer* value = integer()) return static_cast<double>(value->value);
  return floating()->value;
}

Origin Value::number_origin() const {
  if (const Integer* value = integer()) return value->origin;
  if (const Float* value = floating()) return value->origin;
  return Origin::kTemplate;
}

bool Value::Truthy() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBoolean:
    case Kind::kInteger:
    case Kind::kFloat:
      return AsDouble() != 0;
    case Kind::kString:
      return !text()->empty();
    case Kind::kList:
      return !list()->items.empty();
    case Kind::kDict:
      return !dict()->entries.empty();
    case Kind::kNamespace:
    case Kind::kLoop:
    case Kind::kCallable:
      return true;
  }
  return false;
}

std::string_view Value::KindName() const {
  static constexpr std::string_view kNames[] = {
      "an undefined value", "none",   "a boolean", "an integer", "a float", "a string", "a list", "a dict",
      "a namespace",        "a loop", "a function"};
  return kNames[storage_.index()];
}

bool Value::HoldsNamespace() const {
  if (const List* value = list()) return value->holds_namespace;
  if (const Dict* value = dict()) return value->holds_namespace;
  if (const LoopState* value = loop()) return value->items->holds_namespace;
  return is(Kind::kNamespace);
}

int Value::depth() const {
  if (const List* value = list()) return value->depth;
  if (const Dict* value = dict()) return value->depth;
  return 0;
}

const Value* Dict::Find(std::string_view key) const { return FindEntry(entries, IsText(key)); }
const Value* Namespace::Find(std::string_view key) const { return FindEntry(entries, IsText(key)); }

const Value* Dict::Find(const Value& key) const {
  if (const Text* text = key.text()) return Find(text->bytes());
  const Integer* wanted = key.integer();
  if (wanted == nullptr) return nullptr;
  return FindEntry(entries, [wanted](const Value& other) {
    return other.integer() != nullptr && other.integer()->value == wanted->value;
  });
}

absl::Status Namespace::Set(Value key, Value value, Budget* budget) {
  if (value.HoldsNamespace()) return Error("a namespace cannot hold another namespace");
  RETURN_IF_ERROR(budget->Step(1 + entries.size() / 8));
  if (Value* held = const_cast<Value*>(Find(key.text()->bytes()))) {
    *held = std::move(value);
    return absl::OkStatus();
  }
  if (entries.size() >= kMaxDictEntries) {
    return Error("a namespace has more than the limit of ", kMaxDictEntries, " attributes");
  }
  entries.emplace_back(std::move(key), std::move(value));
  return budget->Allocate(sizeof(Dict::Entry));
}

absl::StatusOr<Value> MakeString(Text text, Budget* budget) {
  if (text.size() > kMaxTextBytes) {
    return Error("a string of ", text.size(), " bytes is over the limit of ", kMaxTextBytes);
  }
  RETURN_IF_ERROR(budget->Allocate(text.allocated_bytes()));
  return Value::Shared(std::make_shared<const Text>(std::move(text)));
}

absl::StatusOr<Value> MakeList(std::vector<Value> items, Budget* budget) {
  if (items.size() > kMaxListItems) {
    return Error("a list of ", items.size(), " items is over the limit of ", kMaxListItems);
  }
  RETURN_IF_ERROR(budget->Allocate(64 + items.size() * sizeof(Value)));
  auto list = std::make_shared<List>();
  for (const Value& item : items) {
    list->depth = std::max(list->depth, 1 + item.depth());
    list->holds_namespace |= item.HoldsNamespace();
  }
  RETURN_IF_ERROR(CheckDepth(list->depth));
  list->items = std::move(items);
  return Value::Shared(std::shared_ptr<const List>(std::move(list)));
}

absl::StatusOr<Value> MakeDict(std::vector<Dict::Entry> entries, Budget* budget) {
  if (entries.size() > kMaxDictEntries) {
    return Error("a dict of ", entries.size(), " entries is over the limit of ", kMaxDictEntries);
  }
  RETURN_IF_ERROR(budget->Allocate(64 + entries.size() * sizeof(Dict::Entry)));
  RETURN_IF_ERROR(budget->Step(entries.size() * entries.size() / 8));
  auto dict = std::make_shared<Dict>();
  for (Dict::Entry& entry : entries) {
    const bool is_key = entry.first.text() != nullptr || entry.first.integer() != nullptr;
    if (!is_key)
      return Error("the key of a dict must be a string or an integer, not ", entry.first.KindName());
    dict->depth = std::max(dict->depth, 1 + entry.second.depth());
    dict->holds_namespace |= entry.second.HoldsNamespace();
    if (Value* held = const_cast<Value*>(dict->Find(entry.first))) {
      *held = std::move(entry.second);
    } else {
      dict->entries.push_back(std::move(entry));
    }
  }
  RETURN_IF_ERROR(CheckDepth(dict->depth));
  return Value::Shared(std::shared_ptr<const Dict>(std::move(dict)));
}

absl::StatusOr<Value> MakeFloat(double value, Origin origin) {
  if (!std::isfinite(value)) return Error("the result of a calculation is not a finite number");
  return Value::Double(value, origin);
}

absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget* budget) {
  RETURN_IF_ERROR(budget->Step());
  if (a.integer() != nullptr && b.integer() != nullptr) return a.integer()->value == b.integer()->value;
  if (a.is_number() && b.is_number()) return a.AsDouble() == b.AsDouble();
  if (a.kind() != b.kind()) return false;
  if (const Text* text = a.text()) {
    if (text->size() != b.text()->size()) return false;
    RETURN_IF_ERROR(budget->Scan(text->size()));
    return text->bytes() == b.text()->bytes();
  }
  if (const List* list = a.list()) {
    if (list->items.size() != b.list()->items.size()) return false;
    for (size_t i = 0; i < list->items.size(); ++i) {
      ASSIGN_OR_RETURN(const bool same, Equal(list->items[i], b.list()->items[i], budget));
      if (!same) return false;
    }
    return true;
  }
  if (const Dict* dict = a.dict()) {
    if (dict->entries.size() != b.dict()->entries.size()) return false;
    RETURN_IF_ERROR(budget->Step(dict->entries.size() * dict->entries.size() / 8));
    for (const auto& [key, value] : dict->entries) {
      const Value* other = b.dict()->Find(key);
      if (other == nullptr) return false;
      ASSIGN_OR_RETURN(const bool same, Equal(value, *other, budget));
      if (!same) return false;
    }
    return true;
  }
  return a.space() == b.space() && a.loop() == b.loop() && a.callable() == b.callable();
}

absl::StatusOr<int> Order(const Value& a, const Value& b, bool case_sensitive, Budget* budget) {
  RETURN_IF_ERROR(budget->Step());
  if (a.integer() != nullptr && b.integer() != nullptr) {
    const int64_t left = a.integer()->value;
    const int64_t right = b.integer()->value;
    return left < right ? -1 : left > right ? 1 : 0;
  }
  if (a.is_number() && b.is_number()) return Sign(a.AsDouble(), b.AsDouble());
  if (a.text() != nullptr && b.text() != nullptr) {
    RETURN_IF_ERROR(budget->Scan(a.text()->size() + b.text()->size()));
    // Byte order of UTF-8 is the order of code points.
    if (case_sensitive) return a.text()->bytes().compare(b.text()->bytes());
    return ToLower(a.text()->bytes()).compare(ToLower(b.text()->bytes()));
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    const auto& left = a.list()->items;
    const auto& right = b.list()->items;
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      ASSIGN_OR_RETURN(const int order, Order(left[i], right[i], case_sensitive, budget));
      if (order != 0) return order;
    }
    return Sign(left.size(), right.size());
  }
  return Error(a.KindName(), " and ", b.KindName(), " have no order");
}

absl::StatusOr<std::vector<Value>> ItemsOf(const Value& value, Budget* budget) {
  std::vector<Value> items;
  if (const List* list = value.list()) {
    RETURN_IF_ERROR(budget->Allocate(list->items.size() * sizeof(Value)));
    items = list->items;
  } else if (const Dict* dict = value.dict()) {
    RETURN_IF_ERROR(budget->Allocate(dict->entries.size() * sizeof(Value)));
    for (const auto& [key, unused] : dict->entries) items.push_back(key);
  } else if (const Text* text = value.text()) {
    for (size_t offset = 0; offset < text->size();) {
      const size_t end = offset + CodePointBytes(text->bytes(), offset);
      ASSIGN_OR_RETURN(Value character, MakeString(text->Slice(offset, end), budget));
      items.push_back(std::move(character));
      offset = end;
    }
  } else if (!value.is(Value::Kind::kUndefined)) {
    return Error(value.KindName(), " cannot be iterated over");
  }
  return items;
}

}  // namespace baton::jinja
