#include "engine/tokenizer/jinja/evaluator.h"

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/filters.h"
#include "engine/tokenizer/jinja/format.h"

namespace baton::jinja {

absl::StatusOr<Text> Evaluator::Run(const Block& block,
                                    std::vector<std::pair<std::string_view, Value>> variables) {
  const auto scope = std::make_shared<Scope>(nullptr);
  for (auto& [name, value] : variables) scope->Set(name, std::move(value));
  Text out;
  RETURN_IF_ERROR(Execute(block, scope, &out).status());
  return out;
}

absl::StatusOr<Evaluator::Flow> Evaluator::Execute(const Block& block, const ScopePtr& scope, Text* out) {
  if (depth_ >= kMaxEvaluationDepth) {
    return Error("the rendering nests deeper than the limit of ", kMaxEvaluationDepth);
  }
  ++depth_;
  absl::StatusOr<Flow> flow = Flow::kNext;
  for (const auto& statement : block) {
    flow = ExecuteStatement(*statement, scope, out);
    if (!flow.ok() && !failed_) {
      failed_ = true;
      flow = Error("line ", statement->line, ": ", flow.status().message());
    }
    if (!flow.ok() || *flow != Flow::kNext) break;
  }
  --depth_;
  return flow;
}

absl::StatusOr<Evaluator::Flow> Evaluator::ExecuteStatement(const Statement& statement, const ScopePtr& scope,
                                                            Text* out) {
  RETURN_IF_ERROR(budget()->Step());
  switch (statement.kind) {
    case Statement::Kind::kData: {
      const Text& text = static_cast<const Data&>(statement).text;
      if (out->size() + text.size() > kMaxTextBytes) {
        return Error("a text is over the limit of ", kMaxTextBytes, " bytes");
      }
      RETURN_IF_ERROR(budget()->Allocate(text.size()));
      out->Append(text);
      return Flow::kNext;
    }
    case Statement::Kind::kPrint: {
      ASSIGN_OR_RETURN(const Value value, Evaluate(*static_cast<const Print&>(statement).expression, scope));
      RETURN_IF_ERROR(AppendPrinted(value, out, budget()));
      return Flow::kNext;
    }
    case Statement::Kind::kSet:
      RETURN_IF_ERROR(ExecuteSet(static_cast<const Set&>(statement), scope));
      return Flow::kNext;
    case Statement::Kind::kFor:
      return ExecuteFor(static_cast<const For&>(statement), scope, out);
    case Statement::Kind::kIf:
      return ExecuteIf(static_cast<const If&>(statement), scope, out);
    case Statement::Kind::kMacro: {
      const Macro& macro = static_cast<const Macro&>(statement);
      scope->Set(macro.name, Value::Shared(std::make_shared<const Callable>(&macro, scope)));
      return Flow::kNext;
    }
    case Statement::Kind::kCall:
      RETURN_IF_ERROR(ExecuteCall(static_cast<const Call&>(statement), scope, out));
      return Flow::kNext;
    case Statement::Kind::kFilter:
      RETURN_IF_ERROR(ExecuteFilterBlock(static_cast<const FilterBlock&>(statement), scope, out));
      return Flow::kNext;
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

absl::StatusOr<Evaluator::Flow> Evaluator::ExecuteIf(const If& statement, const ScopePtr& scope, Text* out) {
  for (const auto& [condition, body] : statement.branches) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*condition, scope));
    if (value.Truthy()) return Execute(body, scope, out);
  }
  return Execute(statement.otherwise, scope, out);
}

absl::StatusOr<std::vector<Value>> Evaluator::LoopItems(const For& statement, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value iterated, Evaluate(*statement.items, scope));
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(iterated, budget()));
  if (statement.condition == nullptr) return items;
  std::vector<Value> selected;
  for (Value& item : items) {
    const auto inner = std::make_shared<Scope>(scope);
    RETURN_IF_ERROR(Assign(statement.target, item, inner.get()));
    ASSIGN_OR_RETURN(const Value condition, Evaluate(*statement.condition, inner));
    if (condition.Truthy()) selected.push_back(std::move(item));
  }
  return selected;
}

// A turn that `continue` or `break` ends does not count as one for `else`: so does Jinja.
absl::StatusOr<Evaluator::Flow> Evaluator::ExecuteFor(const For& statement, const ScopePtr& scope,
                                                      Text* out) {
  ASSIGN_OR_RETURN(std::vector<Value> items, LoopItems(statement, scope));
  ASSIGN_OR_RETURN(const Value list, MakeList(std::move(items), budget()));
  const auto loop = std::make_shared<LoopState>();
  loop->items = list.shared_list();
  bool finished_a_turn = false;
  for (; loop->index < loop->items->items.size(); ++loop->index) {
    RETURN_IF_ERROR(budget()->Step());
    const auto turn = std::make_shared<Scope>(scope);
    turn->Set("loop", Value::Shared(loop));
    RETURN_IF_ERROR(Assign(statement.target, loop->items->items[loop->index], turn.get()));
    ASSIGN_OR_RETURN(const Flow flow, Execute(statement.body, turn, out));
    if (flow == Flow::kBreak) break;
    finished_a_turn |= flow == Flow::kNext;
  }
  return finished_a_turn ? Flow::kNext : Execute(statement.otherwise, scope, out);
}

absl::Status Evaluator::ExecuteSet(const Set& statement, const ScopePtr& scope) {
  if (statement.value != nullptr) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*statement.value, scope));
    return Assign(statement.target, std::move(value), scope.get());
  }
  ASSIGN_OR_RETURN(Value value, Capture(statement.body, statement.filters, scope));
  return Assign(statement.target, std::move(value), scope.get());
}

absl::Status Evaluator::Assign(const Target& target, Value value, Scope* scope) {
  if (target.attribute) {
    const Value* object = scope->Find(target.names[0]);
    if (object == nullptr || object->space() == nullptr) {
      return Error("'", target.names[0], "' is no namespace, so its attributes cannot be set");
    }
    return object->space()->Set(*target.attribute, std::move(value), budget());
  }
  if (!target.unpacks) {
    scope->Set(target.names[0], std::move(value));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(value, budget()));
  if (items.size() != target.names.size()) {
    return Error(items.size(), " values cannot be unpacked into ", target.names.size(), " names");
  }
  for (size_t i = 0; i < items.size(); ++i) scope->Set(target.names[i], std::move(items[i]));
  return absl::OkStatus();
}

absl::StatusOr<Value> Evaluator::Capture(const Block& block, const std::vector<Suffix>& filters,
                                         const ScopePtr& scope) {
  Text printed;
  const auto inner = std::make_shared<Scope>(scope);
  RETURN_IF_ERROR(Execute(block, inner, &printed).status());
  ASSIGN_OR_RETURN(Value value, MakeString(std::move(printed), budget()));
  for (const Suffix& filter : filters) {
    ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(filter.arguments, scope));
    ASSIGN_OR_RETURN(value, ApplyFilter(filter.name, value, arguments, &context_));
  }
  return value;
}

absl::Status Evaluator::ExecuteFilterBlock(const FilterBlock& statement, const ScopePtr& scope, Text* out) {
  ASSIGN_OR_RETURN(const Value value, Capture(statement.body, statement.filters, scope));
  return AppendPrinted(value, out, budget());
}

absl::Status Evaluator::ExecuteCall(const Call& statement, const ScopePtr& scope, Text* out) {
  const Postfix& call = static_cast<const Postfix&>(*statement.call);
  ASSIGN_OR_RETURN(Value callee, Evaluate(*call.base, scope));
  for (size_t i = 0; i + 1 < call.suffixes.size(); ++i) {
    ASSIGN_OR_RETURN(callee, ApplySuffix(callee, call.suffixes[i], scope));
  }
  ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(call.suffixes.back().arguments, scope));
  const Value caller = Value::Shared(std::make_shared<const Callable>(statement.caller.get(), scope));
  ASSIGN_OR_RETURN(const Value value, CallValue(callee, arguments, caller));
  return AppendPrinted(value, out, budget());
}

}  // namespace baton::jinja
