#ifndef BATON_ENGINE_TOKENIZER_JINJA_SCOPE_H_
#define BATON_ENGINE_TOKENIZER_JINJA_SCOPE_H_

#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/tokenizer/jinja/arguments.h"
#include "engine/tokenizer/jinja/context.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

struct Macro;

// Variables of a template, of one turn of a loop, of one call of a macro or of one block. An inner scope sees
// the outer ones and assigns to itself. Names live in the template's tree or in the program.
class Scope {
 public:
  explicit Scope(std::shared_ptr<const Scope> outer) : outer_(std::move(outer)) {}

  void Set(std::string_view name, Value value) { variables_.insert_or_assign(name, std::move(value)); }
  // Null when no scope has it. As many steps as scopes nest in the template's source.
  const Value* Find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_.get()) {
      const auto found = scope->variables_.find(name);
      if (found != scope->variables_.end()) return &found->second;
    }
    return nullptr;
  }

 private:
  const std::shared_ptr<const Scope> outer_;
  absl::flat_hash_map<std::string_view, Value> variables_;
};

using BuiltinFunction = absl::StatusOr<Value> (*)(const Arguments& arguments, Context* context);

// A function of the interpreter's own, or a macro with the scope that it was defined in. The scope holds the
// macro, not the other way round.
class Callable {
 public:
  explicit Callable(BuiltinFunction function) : builtin(function) {}
  Callable(const Macro* macro, std::weak_ptr<const Scope> scope) : macro(macro), scope(std::move(scope)) {}

  const BuiltinFunction builtin = nullptr;
  const Macro* const macro = nullptr;
  const std::weak_ptr<const Scope> scope;
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_SCOPE_H_
