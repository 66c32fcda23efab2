#ifndef BATON_ENGINE_TOKENIZER_JINJA_EVALUATOR_H_
#define BATON_ENGINE_TOKENIZER_JINJA_EVALUATOR_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/ast.h"
#include "engine/tokenizer/jinja/context.h"
#include "engine/tokenizer/jinja/scope.h"

namespace baton::jinja {

// Runs one template once, by walking its tree. Made for one rendering, used by its thread; `block` outlives
// it. The stack grows with kMaxEvaluationDepth only: 1 MiB is enough.
class Evaluator {
 public:
  explicit Evaluator(absl::Time now) : context_{.budget = {}, .now = now} {}

  Budget* budget() { return &context_.budget; }

  // What `block` prints with these variables. INVALID_ARGUMENT names the line of the statement that failed.
  absl::StatusOr<Text> Run(const Block& block, std::vector<std::pair<std::string_view, Value>> variables);

 private:
  using ScopePtr = std::shared_ptr<Scope>;
  // How a block ended: at its end, or by a statement that ends or continues the loop around it.
  enum class Flow { kNext, kBreak, kContinue };

  // Statements append what they print to `out`.
  absl::StatusOr<Flow> Execute(const Block& block, const ScopePtr& scope, Text* out);
  absl::StatusOr<Flow> ExecuteStatement(const Statement& statement, const ScopePtr& scope, Text* out);
  absl::StatusOr<Flow> ExecuteIf(const If& statement, const ScopePtr& scope, Text* out);
  absl::StatusOr<Flow> ExecuteFor(const For& statement, const ScopePtr& scope, Text* out);
  absl::Status ExecuteSet(const Set& statement, const ScopePtr& scope);
  absl::Status ExecuteCall(const Call& statement, const ScopePtr& scope, Text* out);
  absl::Status ExecuteFilterBlock(const FilterBlock& statement, const ScopePtr& scope, Text* out);
  // What the block prints in a scope of its own, through the filters.
  absl::StatusOr<Value> Capture(const Block& block, const std::vector<Suffix>& filters,
                                const ScopePtr& scope);
  absl::StatusOr<std::vector<Value>> LoopItems(const For& statement, const ScopePtr& scope);
  absl::Status Assign(const Target& target, Value value, Scope* scope);

  absl::StatusOr<Value> Evaluate(const Expression& expression, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateKind(const Expression& expression, const ScopePtr& scope);
  Value EvaluateName(const Name& name, const Scope& scope);
  absl::StatusOr<Value> EvaluateList(const ListDisplay& list, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateDict(const DictDisplay& dict, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateArithmetic(const Arithmetic& arithmetic, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateComparison(const Comparison& comparison, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateLogic(const Logic& logic, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateConditional(const Conditional& conditional, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluatePostfix(const Postfix& postfix, const ScopePtr& scope);
  // `value` with `suffix` behind it.
  absl::StatusOr<Value> ApplySuffix(const Value& value, const Suffix& suffix, const ScopePtr& scope);
  absl::StatusOr<Value> ApplySlice(const Value& value, const Suffix& suffix, const ScopePtr& scope);
  absl::StatusOr<Value> EvaluateOptional(const ExpressionPtr& expression, const ScopePtr& scope);
  absl::StatusOr<Arguments> EvaluateArguments(const CallArguments& call, const ScopePtr& scope);

  absl::StatusOr<Value> CallValue(const Value& callee, const Arguments& arguments, const Value& caller);
  absl::StatusOr<Value> CallMacro(const Callable& callable, const Arguments& arguments, const Value& caller);
  absl::Status BindParameters(const Macro& macro, const Arguments& arguments, const ScopePtr& scope);

  Context context_;
  int depth_ = 0;
  bool failed_ = false;  // a line has been added to the error that is on its way out
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_EVALUATOR_H_
