#include "common/status_macros.h"
#include "engine/tokenizer/jinja/attributes.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/evaluator.h"
#include "engine/tokenizer/jinja/filters.h"
#include "engine/tokenizer/jinja/functions.h"
#include "engine/tokenizer/jinja/methods.h"
#include "engine/tokenizer/jinja/operators.h"
#include "engine/tokenizer/jinja/tests.h"

namespace baton::jinja {

absl::StatusOr<Value> Evaluator::Evaluate(const Expression& expression, const ScopePtr& scope) {
  if (depth_ >= kMaxEvaluationDepth) {
    return Error("the rendering nests deeper than the limit of ", kMaxEvaluationDepth);
  }
  RETURN_IF_ERROR(budget()->Step());
  ++depth_;
  absl::StatusOr<Value> value = EvaluateKind(expression, scope);
  --depth_;
  return value;
}

absl::StatusOr<Value> Evaluator::EvaluateKind(const Expression& expression, const ScopePtr& scope) {
  switch (expression.kind) {
    case Expression::Kind::kConstant:
      return static_cast<const Constant&>(expression).value;
    case Expression::Kind::kName:
      return EvaluateName(static_cast<const Name&>(expression), *scope);
    case Expression::Kind::kList:
      return EvaluateList(static_cast<const ListDisplay&>(expression), scope);
    case Expression::Kind::kDict:
      return EvaluateDict(static_cast<const DictDisplay&>(expression), scope);
    case Expression::Kind::kArithmetic:
      return EvaluateArithmetic(static_cast<const Arithmetic&>(expression), scope);
    case Expression::Kind::kComparison:
      return EvaluateComparison(static_cast<const Comparison&>(expression), scope);
    case Expression::Kind::kLogic:
      return EvaluateLogic(static_cast<const Logic&>(expression), scope);
    case Expression::Kind::kNot: {
      ASSIGN_OR_RETURN(const Value operand, Evaluate(*static_cast<const Not&>(expression).operand, scope));
      return Value::Boolean(!operand.Truthy());
    }
    case Expression::Kind::kSign: {
      const Sign& sign = static_cast<const Sign&>(expression);
      ASSIGN_OR_RETURN(const Value operand, Evaluate(*sign.operand, scope));
      return ApplySign(sign.negative, operand);
    }
    case Expression::Kind::kConditional:
      return EvaluateConditional(static_cast<const Conditional&>(expression), scope);
    case Expression::Kind::kPostfix:
      return EvaluatePostfix(static_cast<const Postfix&>(expression), scope);
  }
  return Value();
}

Value Evaluator::EvaluateName(const Name& name, const Scope& scope) {
  if (const Value* value = scope.Find(name.name)) return *value;
  std::shared_ptr<const Callable> function = FindFunction(name.name);
  return function == nullptr ? Value() : Value::Shared(std::move(function));
}

absl::StatusOr<Value> Evaluator::EvaluateList(const ListDisplay& list, const ScopePtr& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& item : list.items) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*item, scope));
    items.push_back(std::move(value));
  }
  return MakeList(std::move(items), budget());
}

absl::StatusOr<Value> Evaluator::EvaluateDict(const DictDisplay& dict, const ScopePtr& scope) {
  std::vector<Dict::Entry> entries;
  for (const auto& [key_expression, value_expression] : dict.entries) {
    ASSIGN_OR_RETURN(Value key, Evaluate(*key_expression, scope));
    ASSIGN_OR_RETURN(Value value, Evaluate(*value_expression, scope));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return MakeDict(std::move(entries), budget());
}

absl::StatusOr<Value> Evaluator::EvaluateArithmetic(const Arithmetic& arithmetic, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*arithmetic.first, scope));
  Concatenation concatenation;
  for (const auto& [op, operand] : arithmetic.rest) {
    ASSIGN_OR_RETURN(const Value right, Evaluate(*operand, scope));
    ASSIGN_OR_RETURN(const bool joined, concatenation.Append(op, left, right, budget()));
    if (joined) continue;
    if (concatenation.active()) {
      ASSIGN_OR_RETURN(left, concatenation.Take(budget()));
    }
    ASSIGN_OR_RETURN(left, Calculate(op, left, right, budget()));
  }
  if (concatenation.active()) return concatenation.Take(budget());
  return left;
}

absl::StatusOr<Value> Evaluator::EvaluateComparison(const Comparison& comparison, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*comparison.first, scope));
  for (const auto& [op, operand] : comparison.rest) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*operand, scope));
    ASSIGN_OR_RETURN(const bool holds, Compare(op, left, right, budget()));
    if (!holds) return Value::Boolean(false);
    left = std::move(right);
  }
  return Value::Boolean(true);
}

absl::StatusOr<Value> Evaluator::EvaluateLogic(const Logic& logic, const ScopePtr& scope) {
  Value value;
  for (const ExpressionPtr& operand : logic.operands) {
    ASSIGN_OR_RETURN(value, Evaluate(*operand, scope));
    if (value.Truthy() != logic.is_and) break;
  }
  return value;
}

absl::StatusOr<Value> Evaluator::EvaluateConditional(const Conditional& conditional, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value condition, Evaluate(*conditional.condition, scope));
  if (condition.Truthy()) return Evaluate(*conditional.then, scope);
  return EvaluateOptional(conditional.otherwise, scope);
}

absl::StatusOr<Value> Evaluator::EvaluatePostfix(const Postfix& postfix, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Value value, Evaluate(*postfix.base, scope));
  const std::vector<Suffix>& suffixes = postfix.suffixes;
  for (size_t i = 0; i < suffixes.size(); ++i) {
    RETURN_IF_ERROR(budget()->Step());
    const bool may_be_method = suffixes[i].kind == Suffix::Kind::kAttribute && i + 1 < suffixes.size() &&
                               suffixes[i + 1].kind == Suffix::Kind::kCall;
    if (may_be_method) {
      ASSIGN_OR_RETURN(const Value attribute, GetAttribute(value, suffixes[i].name, budget()));
      if (attribute.callable() == nullptr) {
        ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(suffixes[i + 1].arguments, scope));
        ASSIGN_OR_RETURN(value, CallMethod(value, suffixes[i].name, arguments, &context_));
        ++i;
        continue;
      }
    }
    ASSIGN_OR_RETURN(value, ApplySuffix(value, suffixes[i], scope));
  }
  return value;
}

absl::StatusOr<Value> Evaluator::ApplySuffix(const Value& value, const Suffix& suffix,
                                             const ScopePtr& scope) {
  switch (suffix.kind) {
    case Suffix::Kind::kAttribute:
      return GetAttribute(value, suffix.name, budget());
    case Suffix::Kind::kIndex: {
      ASSIGN_OR_RETURN(const Value index, Evaluate(*suffix.index, scope));
      return GetItem(value, index, budget());
    }
    case Suffix::Kind::kSlice:
      return ApplySlice(value, suffix, scope);
    case Suffix::Kind::kCall:
    case Suffix::Kind::kFilter:
    case Suffix::Kind::kTest:
      break;
  }
  ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(suffix.arguments, scope));
  if (suffix.kind == Suffix::Kind::kCall) return CallValue(value, arguments, Value());
  if (suffix.kind == Suffix::Kind::kFilter) return ApplyFilter(suffix.name, value, arguments, &context_);
  ASSIGN_OR_RETURN(const bool holds, ApplyTest(suffix.name, value, arguments, &context_));
  return Value::Boolean(holds != suffix.negated);
}

absl::StatusOr<Value> Evaluator::ApplySlice(const Value& value, const Suffix& suffix, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value start, EvaluateOptional(suffix.index, scope));
  ASSIGN_OR_RETURN(const Value stop, EvaluateOptional(suffix.stop, scope));
  ASSIGN_OR_RETURN(const Value step, EvaluateOptional(suffix.step, scope));
  return SliceValue(value, start, stop, step, budget());
}

absl::StatusOr<Value> Evaluator::EvaluateOptional(const ExpressionPtr& expression, const ScopePtr& scope) {
  return expression == nullptr ? Value() : Evaluate(*expression, scope);
}

absl::StatusOr<Arguments> Evaluator::EvaluateArguments(const CallArguments& call, const ScopePtr& scope) {
  Arguments arguments;
  for (const ExpressionPtr& expression : call.positional) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*expression, scope));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, expression] : call.named) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*expression, scope));
    arguments.named.emplace_back(name, std::move(value));
  }
  return arguments;
}

absl::StatusOr<Value> Evaluator::CallValue(const Value& callee, const Arguments& arguments,
                                           const Value& caller) {
  const Callable* callable = callee.callable();
  if (callable == nullptr) return Error(callee.KindName(), " cannot be called");
  if (callable->macro != nullptr) return CallMacro(*callable, arguments, caller);
  return callable->builtin(arguments, &context_);
}

absl::StatusOr<Value> Evaluator::CallMacro(const Callable& callable, const Arguments& arguments,
                                           const Value& caller) {
  const std::shared_ptr<const Scope> outer = callable.scope.lock();
  if (outer == nullptr)
    return Error("the macro '", callable.macro->name, "' is called after its block has ended");
  const auto scope = std::make_shared<Scope>(outer);
  if (!caller.is(Value::Kind::kUndefined)) scope->Set("caller", caller);
  RETURN_IF_ERROR(BindParameters(*callable.macro, arguments, scope));
  Text printed;
  RETURN_IF_ERROR(Execute(callable.macro->body, scope, &printed).status());
  return MakeString(std::move(printed), budget());
}

// Defaults are evaluated in the macro's scope, after all that was passed, so one may use another parameter.
absl::Status Evaluator::BindParameters(const Macro& macro, const Arguments& arguments,
                                       const ScopePtr& scope) {
  const auto& parameters = macro.parameters;
  if (arguments.positional.size() > parameters.size()) {
    return Error("the macro '", macro.name, "' takes at most ", parameters.size(), " arguments, not ",
                 arguments.positional.size());
  }
  std::vector<bool> given(parameters.size(), false);
  for (size_t i = 0; i < parameters.size(); ++i) {
    given[i] = i < arguments.positional.size();
    scope->Set(parameters[i].first, given[i] ? arguments.positional[i] : Value());
  }
  for (const auto& [name, value] : arguments.named) {
    size_t at = 0;
    while (at < parameters.size() && parameters[at].first != name) ++at;
    if (at == parameters.size()) return Error("the macro '", macro.name, "' has no parameter '", name, "'");
    if (given[at]) return Error("the macro '", macro.name, "': the argument '", name, "' is given twice");
    given[at] = true;
    scope->Set(parameters[at].first, value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i] || parameters[i].second == nullptr) continue;
    ASSIGN_OR_RETURN(Value value, Evaluate(*parameters[i].second, scope));
    scope->Set(parameters[i].first, std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace baton::jinja
