#ifndef BATON_ENGINE_TOKENIZER_JINJA_EXPRESSION_PARSER_H_
#define BATON_ENGINE_TOKENIZER_JINJA_EXPRESSION_PARSER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/ast.h"
#include "engine/tokenizer/jinja/token_stream.h"

namespace baton::jinja {

// Parses expressions out of a stream, by recursive descent. From loose to tight: if-else, or, and, not,
// comparisons and `in`, + and -, ~, * / // %, **, sign, filters and tests, then attributes, subscripts and
// calls. Everything that repeats at one level is parsed by a loop, so only brackets, signs, `not` and `else`
// nest.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream* stream) : stream_(*stream) {}

  absl::StatusOr<ExpressionPtr> Parse();
  // The same without the if-else level: where an `if` belongs to the statement around it.
  absl::StatusOr<ExpressionPtr> ParseWithoutCondition() { return ParseLogic(/*is_and=*/false); }
  // An expression, or several separated by commas, which make a list.
  absl::StatusOr<ExpressionPtr> ParseSequence();
  // A name and the calls, attributes and subscripts after it, without filters.
  absl::StatusOr<ExpressionPtr> ParseUnfiltered();
  // name(arguments) | name ..., at the first name.
  absl::StatusOr<std::vector<Suffix>> ParseFilters();

 private:
  absl::StatusOr<ExpressionPtr> ParseLogic(bool is_and);
  absl::StatusOr<ExpressionPtr> ParseNot();
  absl::StatusOr<ExpressionPtr> ParseComparison();
  absl::StatusOr<ExpressionPtr> ParseArithmetic(int level);
  absl::StatusOr<ExpressionPtr> ParseSigned();
  absl::StatusOr<ExpressionPtr> ParsePrimary();
  absl::StatusOr<ExpressionPtr> ParseNumber();
  absl::StatusOr<ExpressionPtr> ParseStrings();
  absl::StatusOr<ExpressionPtr> ParseParentheses();
  absl::StatusOr<ExpressionPtr> ParseList();
  absl::StatusOr<ExpressionPtr> ParseDict();
  // Appends the attributes, subscripts and calls that follow here.
  absl::Status ParseAccesses(std::vector<Suffix>* suffixes);
  absl::StatusOr<Suffix> ParseSubscript();
  absl::StatusOr<Suffix> ParseFilter();
  absl::StatusOr<Suffix> ParseTest();
  // After the opening parenthesis, up to and with the closing one.
  absl::StatusOr<CallArguments> ParseArguments();

  TokenStream& stream_;
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_EXPRESSION_PARSER_H_
