#include "engine/tokenizer/jinja/expression_parser.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/string_literal.h"

namespace baton::jinja {
namespace {

using Nested = TokenStream::Nested;

constexpr int kLevels = 4;

// The operators of each level of ParseArithmetic.
std::optional<ArithmeticOp> OperatorOfLevel(const Token& token, int level) {
  struct Entry {
    std::string_view text;
    int level;
    ArithmeticOp op;
  };
  static constexpr Entry kEntries[] = {
      {"+", 0, ArithmeticOp::kAdd},         {"-", 0, ArithmeticOp::kSubtract},
      {"~", 1, ArithmeticOp::kConcatenate}, {"*", 2, ArithmeticOp::kMultiply},
      {"/", 2, ArithmeticOp::kDivide},      {"//", 2, ArithmeticOp::kFloorDivide},
      {"%", 2, ArithmeticOp::kModulo},      {"**", kLevels - 1, ArithmeticOp::kPower}};
  for (const Entry& entry : kEntries) {
    if (entry.level == level && token.IsOperator(entry.text)) return entry.op;
  }
  return std::nullopt;
}

// Takes a comparison operator, if one is here.
std::optional<ComparisonOp> TakeComparisonOp(TokenStream& stream) {
  static constexpr std::pair<std::string_view, ComparisonOp> kOperators[] = {
      {"==", ComparisonOp::kEqual},     {"!=", ComparisonOp::kNotEqual}, {"<", ComparisonOp::kLess},
      {"<=", ComparisonOp::kLessEqual}, {">", ComparisonOp::kGreater},   {">=", ComparisonOp::kGreaterEqual}};
  for (const auto& [text, op] : kOperators) {
    if (stream.TakeOperator(text)) return op;
  }
  if (stream.TakeName("in")) return ComparisonOp::kIn;
  if (stream.Peek().IsName("not") && stream.Peek(1).IsName("in")) {
    stream.Take();
    stream.Take();
    return ComparisonOp::kNotIn;
  }
  return std::nullopt;
}

bool IsReserved(std::string_view name) {
  for (const std::string_view reserved : {"and", "or", "not", "in", "is", "if", "else", "elif"}) {
    if (name == reserved) return true;
  }
  return false;
}

// A test's argument may follow without parentheses: `x is divisibleby 3`.
bool BeginsTestArgument(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kName:
      return !IsReserved(token.text);
    case Token::Kind::kString:
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return true;
    default:
      return token.IsOperator("[") || token.IsOperator("{");
  }
}

ExpressionPtr WithSuffixes(ExpressionPtr base, std::vector<Suffix> suffixes) {
  if (suffixes.empty()) return base;
  auto postfix = std::make_unique<Postfix>();
  postfix->base = std::move(base);
  postfix->suffixes = std::move(suffixes);
  return postfix;
}

}  // namespace

absl::StatusOr<ExpressionPtr> ExpressionParser::Parse() {
  const Nested nested(&stream_);
  RETURN_IF_ERROR(nested.status());
  ASSIGN_OR_RETURN(ExpressionPtr then, ParseWithoutCondition());
  if (!stream_.TakeName("if")) return then;
  auto conditional = std::make_unique<Conditional>();
  conditional->then = std::move(then);
  ASSIGN_OR_RETURN(conditional->condition, ParseWithoutCondition());
  if (stream_.TakeName("else")) {
    ASSIGN_OR_RETURN(conditional->otherwise, Parse());
  }
  return conditional;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseSequence() {
  ASSIGN_OR_RETURN(ExpressionPtr first, Parse());
  if (!stream_.Peek().IsOperator(",")) return first;
  auto list = std::make_unique<ListDisplay>();
  list->items.push_back(std::move(first));
  while (stream_.TakeOperator(",")) {
    const Token& next = stream_.Peek();
    if (next.kind == Token::Kind::kBlockEnd || next.IsOperator(")")) break;
    ASSIGN_OR_RETURN(ExpressionPtr item, Parse());
    list->items.push_back(std::move(item));
  }
  return list;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseLogic(bool is_and) {
  const auto parse_operand = [&] { return is_and ? ParseNot() : ParseLogic(/*is_and=*/true); };
  const std::string_view word = is_and ? "and" : "or";
  ASSIGN_OR_RETURN(ExpressionPtr first, parse_operand());
  if (!stream_.Peek().IsName(word)) return first;
  auto logic = std::make_unique<Logic>(is_and);
  logic->operands.push_back(std::move(first));
  while (stream_.TakeName(word)) {
    ASSIGN_OR_RETURN(ExpressionPtr operand, parse_operand());
    logic->operands.push_back(std::move(operand));
  }
  return logic;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseNot() {
  if (!stream_.TakeName("not")) return ParseComparison();
  const Nested nested(&stream_);
  RETURN_IF_ERROR(nested.status());
  ASSIGN_OR_RETURN(ExpressionPtr operand, ParseNot());
  return std::make_unique<Not>(std::move(operand));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseComparison() {
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseArithmetic(0));
  std::optional<ComparisonOp> op = TakeComparisonOp(stream_);
  if (!op) return first;
  auto comparison = std::make_unique<Comparison>();
  comparison->first = std::move(first);
  for (; op; op = TakeComparisonOp(stream_)) {
    ASSIGN_OR_RETURN(ExpressionPtr operand, ParseArithmetic(0));
    comparison->rest.emplace_back(*op, std::move(operand));
  }
  return comparison;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseArithmetic(int level) {
  if (level == kLevels) return ParseSigned();
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseArithmetic(level + 1));
  std::optional<ArithmeticOp> op = OperatorOfLevel(stream_.Peek(), level);
  if (!op) return first;
  auto arithmetic = std::make_unique<Arithmetic>();
  arithmetic->first = std::move(first);
  for (; op; op = OperatorOfLevel(stream_.Peek(), level)) {
    stream_.Take();
    ASSIGN_OR_RETURN(ExpressionPtr operand, ParseArithmetic(level + 1));
    arithmetic->rest.emplace_back(*op, std::move(operand));
  }
  return arithmetic;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseSigned() {
  ASSIGN_OR_RETURN(ExpressionPtr base, ParseUnfiltered());
  std::vector<Suffix> suffixes;
  while (true) {
    if (stream_.TakeOperator("|")) {
      ASSIGN_OR_RETURN(Suffix filter, ParseFilter());
      suffixes.push_back(std::move(filter));
    } else if (stream_.TakeName("is")) {
      ASSIGN_OR_RETURN(Suffix test, ParseTest());
      suffixes.push_back(std::move(test));
    } else {
      return WithSuffixes(std::move(base), std::move(suffixes));
    }
  }
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseUnfiltered() {
  const bool negative = stream_.Peek().IsOperator("-");
  if (negative || stream_.Peek().IsOperator("+")) {
    const Nested nested(&stream_);
    RETURN_IF_ERROR(nested.status());
    stream_.Take();
    ASSIGN_OR_RETURN(ExpressionPtr operand, ParseUnfiltered());
    return std::make_unique<Sign>(negative, std::move(operand));
  }
  ASSIGN_OR_RETURN(ExpressionPtr base, ParsePrimary());
  std::vector<Suffix> suffixes;
  RETURN_IF_ERROR(ParseAccesses(&suffixes));
  return WithSuffixes(std::move(base), std::move(suffixes));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParsePrimary() {
  const Token& token = stream_.Peek();
  switch (token.kind) {
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return ParseNumber();
    case Token::Kind::kString:
      return ParseStrings();
    case Token::Kind::kName: {
      const std::string name(token.text);
      if (IsReserved(name)) break;
      stream_.Take();
      if (name == "true" || name == "True") return std::make_unique<Constant>(Value::Boolean(true));
      if (name == "false" || name == "False") return std::make_unique<Constant>(Value::Boolean(false));
      if (name == "none" || name == "None") return std::make_unique<Constant>(Value::None());
      return std::make_unique<Name>(name);
    }
    default:
      if (stream_.TakeOperator("(")) return ParseParentheses();
      if (stream_.TakeOperator("[")) return ParseList();
      if (stream_.TakeOperator("{")) return ParseDict();
      break;
  }
  return stream_.Unexpected("an expression");
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseNumber() {
  const Token token = stream_.Take();
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == Token::Kind::kInteger) {
    int64_t value = 0;
    if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
      return stream_.ErrorHere("the integer ", token.text.substr(0, 40), " is over 64 bits");
    }
    return std::make_unique<Constant>(Value::Int(value));
  }
  double value = 0;
  if (std::from_chars(token.text.data(), end, value).ec != std::errc() || !std::isfinite(value)) {
    return stream_.ErrorHere("the number ", token.text.substr(0, 40), " is out of range");
  }
  return std::make_unique<Constant>(Value::Double(value));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseStrings() {
  std::string joined;
  while (stream_.Peek().kind == Token::Kind::kString) {
    const std::string_view quoted = stream_.Peek().text;
    absl::StatusOr<std::string> decoded = DecodeStringLiteral(quoted.substr(1, quoted.size() - 2));
    if (!decoded.ok()) return stream_.ErrorHere(decoded.status().message());
    joined += *decoded;
    stream_.Take();
  }
  return std::make_unique<Constant>(Value::Literal(std::move(joined)));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseParentheses() {
  if (stream_.TakeOperator(")")) return std::make_unique<ListDisplay>();
  ASSIGN_OR_RETURN(ExpressionPtr inner, ParseSequence());
  RETURN_IF_ERROR(stream_.ExpectOperator(")"));
  return inner;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseList() {
  auto list = std::make_unique<ListDisplay>();
  while (!stream_.TakeOperator("]")) {
    if (!list->items.empty()) {
      RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.TakeOperator("]")) break;
    }
    ASSIGN_OR_RETURN(ExpressionPtr item, Parse());
    list->items.push_back(std::move(item));
  }
  return list;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseDict() {
  auto dict = std::make_unique<DictDisplay>();
  while (!stream_.TakeOperator("}")) {
    if (!dict->entries.empty()) {
      RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.TakeOperator("}")) break;
    }
    ASSIGN_OR_RETURN(ExpressionPtr key, Parse());
    RETURN_IF_ERROR(stream_.ExpectOperator(":"));
    ASSIGN_OR_RETURN(ExpressionPtr value, Parse());
    dict->entries.emplace_back(std::move(key), std::move(value));
  }
  return dict;
}

absl::Status ExpressionParser::ParseAccesses(std::vector<Suffix>* suffixes) {
  while (true) {
    Suffix suffix;
    if (stream_.TakeOperator(".")) {
      const Token token = stream_.Peek();
      if (token.kind == Token::Kind::kInteger) {
        suffix.kind = Suffix::Kind::kIndex;
        ASSIGN_OR_RETURN(suffix.index, ParseNumber());
      } else {
        RETURN_IF_ERROR(stream_.Expect(Token::Kind::kName, "a name after '.'"));
        suffix.name = token.text;
      }
    } else if (stream_.TakeOperator("[")) {
      ASSIGN_OR_RETURN(suffix, ParseSubscript());
    } else if (stream_.TakeOperator("(")) {
      suffix.kind = Suffix::Kind::kCall;
      ASSIGN_OR_RETURN(suffix.arguments, ParseArguments());
    } else {
      return absl::OkStatus();
    }
    suffixes->push_back(std::move(suffix));
  }
}

absl::StatusOr<Suffix> ExpressionParser::ParseSubscript() {
  Suffix suffix;
  suffix.kind = Suffix::Kind::kIndex;
  const auto part_follows = [&] {
    return !stream_.Peek().IsOperator(":") && !stream_.Peek().IsOperator("]");
  };
  if (part_follows()) {
    ASSIGN_OR_RETURN(suffix.index, Parse());
  } else if (!stream_.Peek().IsOperator(":")) {
    return stream_.Unexpected("a subscript");
  }
  if (stream_.TakeOperator(":")) {
    suffix.kind = Suffix::Kind::kSlice;
    if (part_follows()) {
      ASSIGN_OR_RETURN(suffix.stop, Parse());
    }
    if (stream_.TakeOperator(":") && part_follows()) {
      ASSIGN_OR_RETURN(suffix.step, Parse());
    }
  }
  RETURN_IF_ERROR(stream_.ExpectOperator("]"));
  return suffix;
}

absl::StatusOr<std::vector<Suffix>> ExpressionParser::ParseFilters() {
  std::vector<Suffix> filters;
  do {
    ASSIGN_OR_RETURN(Suffix filter, ParseFilter());
    filters.push_back(std::move(filter));
  } while (stream_.TakeOperator("|"));
  return filters;
}

absl::StatusOr<Suffix> ExpressionParser::ParseFilter() {
  Suffix suffix;
  suffix.kind = Suffix::Kind::kFilter;
  suffix.name = stream_.Peek().text;
  RETURN_IF_ERROR(stream_.Expect(Token::Kind::kName, "the name of a filter"));
  if (stream_.TakeOperator("(")) {
    ASSIGN_OR_RETURN(suffix.arguments, ParseArguments());
  }
  return suffix;
}

absl::StatusOr<Suffix> ExpressionParser::ParseTest() {
  Suffix suffix;
  suffix.kind = Suffix::Kind::kTest;
  suffix.negated = stream_.TakeName("not");
  suffix.name = stream_.Peek().text;
  RETURN_IF_ERROR(stream_.Expect(Token::Kind::kName, "the name of a test"));
  if (stream_.TakeOperator("(")) {
    ASSIGN_OR_RETURN(suffix.arguments, ParseArguments());
  } else if (BeginsTestArgument(stream_.Peek())) {
    ASSIGN_OR_RETURN(ExpressionPtr argument, ParseUnfiltered());
    suffix.arguments.positional.push_back(std::move(argument));
  }
  return suffix;
}

absl::StatusOr<CallArguments> ExpressionParser::ParseArguments() {
  CallArguments arguments;
  bool first = true;
  while (!stream_.TakeOperator(")")) {
    if (!first) {
      RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.TakeOperator(")")) break;
    }
    first = false;
    if (stream_.Peek().kind == Token::Kind::kName && stream_.Peek(1).IsOperator("=")) {
      std::string name(stream_.Take().text);
      stream_.Take();
      ASSIGN_OR_RETURN(ExpressionPtr value, Parse());
      arguments.named.emplace_back(std::move(name), std::move(value));
      continue;
    }
    if (!arguments.named.empty()) return stream_.ErrorHere("a positional argument follows a named one");
    ASSIGN_OR_RETURN(ExpressionPtr value, Parse());
    arguments.positional.push_back(std::move(value));
  }
  return arguments;
}

}  // namespace baton::jinja
