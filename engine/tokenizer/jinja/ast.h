#ifndef BATON_ENGINE_TOKENIZER_JINJA_AST_H_
#define BATON_ENGINE_TOKENIZER_JINJA_AST_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/tokenizer/jinja/text.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// The tree that the parser makes of a template. Immutable once made; each node owns its children. Chains of
// operators, of suffixes and of elif branches are lists, so the height of the tree is bounded by
// kMaxParseNesting.

struct Expression {
  enum class Kind {
    kConstant,
    kName,
    kList,
    kDict,
    kArithmetic,
    kComparison,
    kLogic,
    kNot,
    kSign,
    kConditional,
    kPostfix
  };

  explicit Expression(Kind kind) : kind(kind) {}
  virtual ~Expression() = default;

  const Kind kind;
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct Constant : Expression {
  explicit Constant(Value value) : Expression(Kind::kConstant), value(std::move(value)) {}
  Value value;
};

struct Name : Expression {
  explicit Name(std::string name) : Expression(Kind::kName), name(std::move(name)) {}
  std::string name;
};

// [a, b] and (a, b).
struct ListDisplay : Expression {
  ListDisplay() : Expression(Kind::kList) {}
  std::vector<ExpressionPtr> items;
};

struct DictDisplay : Expression {
  DictDisplay() : Expression(Kind::kDict) {}
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

enum class ArithmeticOp { kAdd, kSubtract, kConcatenate, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

// first op operand op operand ..., all of one precedence, from left to right.
struct Arithmetic : Expression {
  Arithmetic() : Expression(Kind::kArithmetic) {}
  ExpressionPtr first;
  std::vector<std::pair<ArithmeticOp, ExpressionPtr>> rest;
};

enum class ComparisonOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

// a < b < c means a < b and b < c, with b evaluated once.
struct Comparison : Expression {
  Comparison() : Expression(Kind::kComparison) {}
  ExpressionPtr first;
  std::vector<std::pair<ComparisonOp, ExpressionPtr>> rest;
};

// Operands joined by `and`, or by `or`: at least two.
struct Logic : Expression {
  explicit Logic(bool is_and) : Expression(Kind::kLogic), is_and(is_and) {}
  bool is_and;
  std::vector<ExpressionPtr> operands;
};

struct Not : Expression {
  explicit Not(ExpressionPtr operand) : Expression(Kind::kNot), operand(std::move(operand)) {}
  ExpressionPtr operand;
};

struct Sign : Expression {
  Sign(bool negative, ExpressionPtr operand)
      : Expression(Kind::kSign), negative(negative), operand(std::move(operand)) {}
  bool negative;
  ExpressionPtr operand;
};

struct Conditional : Expression {
  Conditional() : Expression(Kind::kConditional) {}
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;  // null: undefined
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

// What follows a primary expression.
struct Suffix {
  enum class Kind { kAttribute, kIndex, kSlice, kCall, kFilter, kTest };
  Kind kind = Kind::kAttribute;
  std::string name;      // attribute, filter, test
  bool negated = false;  // is not
  ExpressionPtr index;   // also the start of a slice
  ExpressionPtr stop;    // start, stop and step may be null
  ExpressionPtr step;
  CallArguments arguments;  // call, filter, test
};

struct Postfix : Expression {
  Postfix() : Expression(Kind::kPostfix) {}
  ExpressionPtr base;
  std::vector<Suffix> suffixes;
};

struct Statement {
  enum class Kind { kData, kPrint, kSet, kFor, kIf, kMacro, kCall, kFilter, kBreak, kContinue };

  Statement(Kind kind, int line) : kind(kind), line(line) {}
  virtual ~Statement() = default;

  const Kind kind;
  const int line;
};
using Block = std::vector<std::unique_ptr<Statement>>;

struct Data : Statement {
  Data(std::string bytes, int line)
      : Statement(Kind::kData, line), text(std::move(bytes), Origin::kTemplate) {}
  Text text;
};

struct Print : Statement {
  Print(ExpressionPtr expression, int line)
      : Statement(Kind::kPrint, line), expression(std::move(expression)) {}
  ExpressionPtr expression;
};

// What set and for assign to: one name, several names (the value is unpacked), or an attribute of a
// namespace.
struct Target {
  std::vector<std::string> names;
  bool unpacks = false;
  std::optional<Value> attribute;  // a string: of the namespace in names[0]
};

struct Set : Statement {
  explicit Set(int line) : Statement(Kind::kSet, line) {}
  Target target;
  ExpressionPtr value;  // null: what the body prints, through the filters
  std::vector<Suffix> filters;
  Block body;
};

struct For : Statement {
  explicit For(int line) : Statement(Kind::kFor, line) {}
  Target target;
  ExpressionPtr items;
  ExpressionPtr condition;  // may be null
  Block body;
  Block otherwise;
};

struct If : Statement {
  explicit If(int line) : Statement(Kind::kIf, line) {}
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};

struct Macro : Statement {
  explicit Macro(int line) : Statement(Kind::kMacro, line) {}
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // the default may be null
  Block body;
};

// {% call macro(...) %}: the body is the macro `caller` of the called one.
struct Call : Statement {
  explicit Call(int line) : Statement(Kind::kCall, line) {}
  ExpressionPtr call;
  std::unique_ptr<Macro> caller;
};

struct FilterBlock : Statement {
  explicit FilterBlock(int line) : Statement(Kind::kFilter, line) {}
  std::vector<Suffix> filters;
  Block body;
};

// break, continue.
struct Jump : Statement {
  using Statement::Statement;
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_AST_H_
