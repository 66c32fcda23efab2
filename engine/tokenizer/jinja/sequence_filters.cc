#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/status_macros.h"
#include "engine/tokenizer/jinja/attributes.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/filters.h"
#include "engine/tokenizer/jinja/methods.h"
#include "engine/tokenizer/jinja/operators.h"
#include "engine/tokenizer/jinja/tests.h"
#include "engine/tokenizer/jinja/text_operations.h"

namespace baton::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// The part of an item that an `attribute` argument names: a path or an index. The item itself when there is
// none.
Result AttributeOf(const Value& item, const Value& attribute, Budget* budget) {
  if (attribute.is(Value::Kind::kUndefined) || attribute.is(Value::Kind::kNone)) return item;
  if (attribute.text() != nullptr) return GetPath(item, attribute.text()->bytes(), budget);
  return GetItem(item, attribute, budget);
}

Result Default(const Value& input, const Arguments& arguments, Context*) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("default", arguments, {"default_value", "boolean"}));
  ASSIGN_OR_RETURN(const bool falsy_too, bound.BooleanOr(1, false));
  const bool replaces = input.is(Value::Kind::kUndefined) || (falsy_too && !input.Truthy());
  if (!replaces) return input;
  return bound.has(0) ? bound[0] : Value::Literal("");
}

Result Length(const Value& input, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("length", arguments, {}).status());
  if (const Text* text = input.text()) {
    RETURN_IF_ERROR(context->budget.Scan(text->size()));
    return Value::Int(CountCodePoints(text->bytes()));
  }
  if (const List* list = input.list()) return Value::Int(list->items.size());
  if (const Dict* dict = input.dict()) return Value::Int(dict->entries.size());
  if (input.is(Value::Kind::kUndefined)) return Value::Int(0);
  return Error("length: ", input.KindName(), " has no length");
}

Result First(const Value& input, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("first", arguments, {}).status());
  if (input.text() != nullptr || input.list() != nullptr)
    return GetItem(input, Value::Int(0), &context->budget);
  ASSIGN_OR_RETURN(const std::vector<Value> items, ItemsOf(input, &context->budget));
  return items.empty() ? Value() : items.front();
}

Result Last(const Value& input, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("last", arguments, {}).status());
  if (input.text() != nullptr || input.list() != nullptr)
    return GetItem(input, Value::Int(-1), &context->budget);
  ASSIGN_OR_RETURN(const std::vector<Value> items, ItemsOf(input, &context->budget));
  return items.empty() ? Value() : items.back();
}

Result ListFilter(const Value& input, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("list", arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  return MakeList(std::move(items), &context->budget);
}

Result Reverse(const Value& input, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("reverse", arguments, {}).status());
  if (input.text() != nullptr) return SliceValue(input, Value(), Value(), Value::Int(-1), &context->budget);
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  std::reverse(items.begin(), items.end());
  return MakeList(std::move(items), &context->budget);
}

Result Join(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("join", arguments, {"d", "attribute"}));
  ASSIGN_OR_RETURN(const Text* separator, bound.OptionalText(0));
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  for (Value& item : items) {
    ASSIGN_OR_RETURN(item, AttributeOf(item, bound[1], &context->budget));
  }
  return JoinValues(items, separator == nullptr ? Text() : *separator, &context->budget);
}

// Sorts (key, value) pairs, keeping the order of equal keys.
absl::Status SortByKey(bool case_sensitive, bool descending, Budget* budget,
                       std::vector<std::pair<Value, Value>>* pairs) {
  absl::Status failure;
  std::stable_sort(pairs->begin(), pairs->end(), [&](const auto& a, const auto& b) {
    if (!failure.ok()) return false;
    const absl::StatusOr<int> order = Order(a.first, b.first, case_sensitive, budget);
    if (!order.ok()) {
      failure = order.status();
      return false;
    }
    return descending ? *order > 0 : *order < 0;
  });
  return failure;
}

Result MakeListOfSeconds(std::vector<std::pair<Value, Value>> pairs, Budget* budget) {
  std::vector<Value> items;
  for (auto& [key, value] : pairs) items.push_back(std::move(value));
  return MakeList(std::move(items), budget);
}

Result Sort(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const bool descending, bound.BooleanOr(0, false));
  ASSIGN_OR_RETURN(const bool case_sensitive, bound.BooleanOr(1, false));
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  std::vector<std::pair<Value, Value>> pairs;
  for (Value& item : items) {
    ASSIGN_OR_RETURN(Value key, AttributeOf(item, bound[2], &context->budget));
    pairs.emplace_back(std::move(key), std::move(item));
  }
  RETURN_IF_ERROR(SortByKey(case_sensitive, descending, &context->budget, &pairs));
  return MakeListOfSeconds(std::move(pairs), &context->budget);
}

Result DictSort(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}));
  ASSIGN_OR_RETURN(const bool case_sensitive, bound.BooleanOr(0, false));
  ASSIGN_OR_RETURN(const Text* by, bound.OptionalText(1));
  ASSIGN_OR_RETURN(const bool descending, bound.BooleanOr(2, false));
  const bool by_value = by != nullptr && by->bytes() == "value";
  if (by != nullptr && !by_value && by->bytes() != "key")
    return Error("dictsort: 'by' is neither 'key' nor 'value'");
  if (input.dict() == nullptr) return Error("dictsort: a dict is wanted, not ", input.KindName());
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto& [key, value] : input.dict()->entries) {
    ASSIGN_OR_RETURN(Value item, MakeList({key, value}, &context->budget));
    pairs.emplace_back(by_value ? value : key, std::move(item));
  }
  RETURN_IF_ERROR(SortByKey(case_sensitive, descending, &context->budget, &pairs));
  return MakeListOfSeconds(std::move(pairs), &context->budget);
}

Result Items(const Value& input, const Arguments& arguments, Context* context) {
  if (input.is(Value::Kind::kUndefined)) return MakeList({}, &context->budget);
  return CallMethod(input, "items", arguments, context);
}

Result Unique(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("unique", arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const bool case_sensitive, bound.BooleanOr(0, false));
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  absl::flat_hash_set<std::string> texts;
  std::vector<Value> others;
  std::vector<Value> kept;
  for (Value& item : items) {
    ASSIGN_OR_RETURN(Value key, AttributeOf(item, bound[1], &context->budget));
    if (const Text* text = key.text()) {
      RETURN_IF_ERROR(context->budget.Allocate(text->size()));
      if (!texts.insert(case_sensitive ? std::string(text->bytes()) : ToLower(text->bytes())).second)
        continue;
    } else {
      bool seen = false;
      for (size_t i = 0; i < others.size() && !seen; ++i) {
        ASSIGN_OR_RETURN(seen, Equal(others[i], key, &context->budget));
      }
      if (seen) continue;
      others.push_back(std::move(key));
    }
    kept.push_back(std::move(item));
  }
  return MakeList(std::move(kept), &context->budget);
}

// The arguments without the first `count` positional ones.
Arguments Rest(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + count);
  return rest;
}

Result Map(const Value& input, const Arguments& arguments, Context* context) {
  if (!input.Truthy()) return MakeList({}, &context->budget);  // as Jinja does, none included
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  if (!arguments.positional.empty()) {
    const Text* name = arguments.positional[0].text();
    if (name == nullptr)
      return Error("map: the name of a filter is wanted, not ", arguments.positional[0].KindName());
    const Arguments rest = Rest(arguments, 1);
    for (Value& item : items) {
      ASSIGN_OR_RETURN(item, ApplyFilter(name->bytes(), item, rest, context));
    }
    return MakeList(std::move(items), &context->budget);
  }
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("map", arguments, {"attribute", "default"}, 1));
  for (Value& item : items) {
    ASSIGN_OR_RETURN(item, AttributeOf(item, bound[0], &context->budget));
    if (item.is(Value::Kind::kUndefined)) item = bound[1];
  }
  return MakeList(std::move(items), &context->budget);
}

// select, reject and, with an attribute in front, selectattr, rejectattr: by a test, or by truth without one.
template <bool kSelects, bool kByAttribute>
Result SelectItems(const Value& input, const Arguments& arguments, Context* context) {
  if (kByAttribute && arguments.positional.empty())
    return Error("selectattr, rejectattr: the attribute is missing");
  const Arguments test = Rest(arguments, kByAttribute ? 1 : 0);
  const Text* name = test.positional.empty() ? nullptr : test.positional[0].text();
  if (name == nullptr && test.size() > 0) return Error("select, reject: the name of a test is wanted");
  if (!input.Truthy()) return MakeList({}, &context->budget);  // as Jinja does, none included
  const Arguments test_arguments = name == nullptr ? Arguments() : Rest(test, 1);
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  std::vector<Value> kept;
  for (Value& item : items) {
    RETURN_IF_ERROR(context->budget.Step());
    Value tested = item;
    if (kByAttribute) {
      ASSIGN_OR_RETURN(tested, AttributeOf(item, arguments.positional[0], &context->budget));
    }
    bool holds = tested.Truthy();
    if (name != nullptr) {
      ASSIGN_OR_RETURN(holds, ApplyTest(name->bytes(), tested, test_arguments, context));
    }
    if (holds == kSelects) kept.push_back(std::move(item));
  }
  return MakeList(std::move(kept), &context->budget);
}

Result Sum(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("sum", arguments, {"attribute", "start"}));
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(input, &context->budget));
  Value sum = bound.has(1) ? bound[1] : Value::Int(0);
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value term, AttributeOf(item, bound[0], &context->budget));
    ASSIGN_OR_RETURN(sum, Calculate(ArithmeticOp::kAdd, sum, term, &context->budget));
  }
  return sum;
}

template <bool kLargest>
Result Extreme(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("min, max", arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const bool case_sensitive, bound.BooleanOr(0, false));
  ASSIGN_OR_RETURN(const std::vector<Value> items, ItemsOf(input, &context->budget));
  Value best;
  Value best_key;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value key, AttributeOf(item, bound[1], &context->budget));
    int order = kLargest ? 1 : -1;
    if (&item != items.data()) {
      ASSIGN_OR_RETURN(order, Order(key, best_key, case_sensitive, &context->budget));
    }
    if (kLargest ? order <= 0 : order >= 0) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Result Batch(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("batch", arguments, {"linecount", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const int64_t size, bound.IntegerOr(0, 0));
  if (size < 1 || size > static_cast<int64_t>(kMaxListItems)) {
    return Error("batch: ", size, " items are not in 1 .. ", kMaxListItems);
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, ItemsOf(input, &context->budget));
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items.size(); begin += size) {
    const size_t end = std::min(items.size(), begin + size);
    std::vector<Value> batch(items.begin() + begin, items.begin() + end);
    if (bound.has(1) && !bound[1].is(Value::Kind::kNone)) batch.resize(size, bound[1]);
    ASSIGN_OR_RETURN(Value list, MakeList(std::move(batch), &context->budget));
    batches.push_back(std::move(list));
  }
  return MakeList(std::move(batches), &context->budget);
}

}  // namespace

Filter FindSequenceFilter(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, Filter>;
  static const Table* const kTable = new Table{
      {"default", Default},
      {"d", Default},
      {"length", Length},
      {"count", Length},
      {"first", First},
      {"last", Last},
      {"list", ListFilter},
      {"reverse", Reverse},
      {"join", Join},
      {"sort", Sort},
      {"dictsort", DictSort},
      {"items", Items},
      {"unique", Unique},
      {"map", Map},
      {"select", SelectItems<true, false>},
      {"reject", SelectItems<false, false>},
      {"selectattr", SelectItems<true, true>},
      {"rejectattr", SelectItems<false, true>},
      {"sum", Sum},
      {"min", Extreme<false>},
      {"max", Extreme<true>},
      {"batch", Batch},
  };
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace baton::jinja
