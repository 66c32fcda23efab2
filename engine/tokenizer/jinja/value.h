#ifndef BATON_ENGINE_TOKENIZER_JINJA_VALUE_H_
#define BATON_ENGINE_TOKENIZER_JINJA_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/limits.h"
#include "engine/tokenizer/jinja/text.h"

namespace baton::jinja {

class Callable;
struct Dict;
struct List;
struct LoopState;
struct Namespace;

// A number remembers whether it was read out of message text, because printing turns it into text again.
struct Integer {
  int64_t value = 0;
  Origin origin = Origin::kTemplate;
};
struct Float {
  double value = 0;  // finite
  Origin origin = Origin::kTemplate;
};

// What an expression evaluates to. Cheap to copy: everything large is shared and immutable, but for
// namespaces and loops. Lists, dicts and namespaces never form a cycle, because a namespace may not hold
// another one. Confined to the thread of the rendering, except for constants in a parsed template.
class Value {
 public:
  // In the order of the variant below.
  enum class Kind {
    kUndefined,
    kNone,
    kBoolean,
    kInteger,
    kFloat,
    kString,
    kList,
    kDict,
    kNamespace,
    kLoop,
    kCallable
  };

  Value() = default;  // undefined
  static Value None() { return Value(Storage(NoneTag())); }
  static Value Boolean(bool value) { return Value(Storage(value)); }
  static Value Int(int64_t value, Origin origin = Origin::kTemplate) {
    return Value(Storage(Integer{value, origin}));
  }
  // `value` is finite: MakeFloat checks.
  static Value Double(double value, Origin origin = Origin::kTemplate) {
    return Value(Storage(Float{value, origin}));
  }
  // A constant of the template, not charged to any budget.
  static Value Literal(std::string bytes) {
    return Value(Storage(std::make_shared<const Text>(std::move(bytes), Origin::kTemplate)));
  }
  static Value Shared(std::shared_ptr<const Text> text) { return Value(Storage(std::move(text))); }
  static Value Shared(std::shared_ptr<Namespace> space) { return Value(Storage(std::move(space))); }
  static Value Shared(std::shared_ptr<LoopState> loop) { return Value(Storage(std::move(loop))); }
  static Value Shared(std::shared_ptr<const Callable> callable) {
    return Value(Storage(std::move(callable)));
  }
  static Value Shared(std::shared_ptr<const List> list) { return Value(Storage(std::move(list))); }
  static Value Shared(std::shared_ptr<const Dict> dict) { return Value(Storage(std::move(dict))); }

  Kind kind() const { return static_cast<Kind>(storage_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_number() const { return is(Kind::kBoolean) || is(Kind::kInteger) || is(Kind::kFloat); }

  // Null, or the content when the value is of that kind.
  const bool* boolean() const { return std::get_if<bool>(&storage_); }
  const Integer* integer() const { return std::get_if<Integer>(&storage_); }
  const Float* floating() const { return std::get_if<Float>(&storage_); }
  const Text* text() const { return Pointer<const Text>(); }
  const List* list() const { return Pointer<const List>(); }
  const Dict* dict() const { return Pointer<const Dict>(); }
  Namespace* space() const { return Pointer<Namespace>(); }
  LoopState* loop() const { return Pointer<LoopState>(); }
  const Callable* callable() const { return Pointer<const Callable>(); }
  std::shared_ptr<const List> shared_list() const {
    return *std::get_if<std::shared_ptr<const List>>(&storage_);
  }

  // Numeric value of a number or boolean; `is_number()`.
  double AsDouble() const;
  Origin number_origin() const;

  bool Truthy() const;
  // "a string", "a list": for error texts.
  std::string_view KindName() const;
  // Whether a namespace can be reached from here.
  bool HoldsNamespace() const;
  // 0 for anything but lists and dicts.
  int depth() const;

 private:
  struct NoneTag {};
  using Storage =
      std::variant<std::monostate, NoneTag, bool, Integer, Float, std::shared_ptr<const Text>,
                   std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                   std::shared_ptr<LoopState>, std::shared_ptr<const Callable>>;
  explicit Value(Storage storage) : storage_(std::move(storage)) {}

  template <typename T>
  T* Pointer() const {
    const auto* shared = std::get_if<std::shared_ptr<T>>(&storage_);
    return shared == nullptr ? nullptr : shared->get();
  }

  Storage storage_;
};

// Lists and tuples alike.
struct List {
  std::vector<Value> items;
  int depth = 1;
  bool holds_namespace = false;
};

// In the order of insertion; keys are strings and integers.
struct Dict {
  using Entry = std::pair<Value, Value>;
  std::vector<Entry> entries;
  int depth = 1;
  bool holds_namespace = false;

  // Null when there is none.
  const Value* Find(std::string_view key) const;
  const Value* Find(const Value& key) const;
};

// What {% set ns.x = ... %} changes.
struct Namespace {
  std::vector<Dict::Entry> entries;  // keys are strings

  const Value* Find(std::string_view key) const;
  // `key` is a string.
  absl::Status Set(Value key, Value value, Budget* budget);
};

// The variable `loop` of a running for statement.
struct LoopState {
  std::shared_ptr<const List> items;
  size_t index = 0;
};

// Makers that charge the budget and keep the limits on sizes and depths.
absl::StatusOr<Value> MakeString(Text text, Budget* budget);
absl::StatusOr<Value> MakeList(std::vector<Value> items, Budget* budget);
// Later entries replace earlier ones with the same key. INVALID_ARGUMENT for a key of another type.
absl::StatusOr<Value> MakeDict(std::vector<Dict::Entry> entries, Budget* budget);
// INVALID_ARGUMENT when `value` is not finite.
absl::StatusOr<Value> MakeFloat(double value, Origin origin);

// Equality as Python has it: numbers and booleans by value, lists and dicts by content.
absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget* budget);
// Negative, zero, positive; INVALID_ARGUMENT for values that have no order.
absl::StatusOr<int> Order(const Value& a, const Value& b, bool case_sensitive, Budget* budget);

// The items of what a for loop accepts: lists, keys of dicts, characters of strings; undefined is empty.
absl::StatusOr<std::vector<Value>> ItemsOf(const Value& value, Budget* budget);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_VALUE_H_
