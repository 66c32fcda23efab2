#include "engine/tokenizer/jinja/parser.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "common/string_views.h"
#include "common/utf8.h"
#include "engine/tokenizer/jinja/expression_parser.h"
#include "engine/tokenizer/jinja/lexer.h"
#include "engine/tokenizer/jinja/token_stream.h"

namespace baton::jinja {
namespace {

using Kind = Token::Kind;
using StatementPtr = std::unique_ptr<Statement>;
using EndNames = std::initializer_list<std::string_view>;

// Statements by recursive descent. Each Parse function of a statement begins behind the statement's name and
// ends behind the end of its last tag.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : stream_(std::move(tokens)), expressions_(&stream_) {}

  absl::StatusOr<Block> Run() && {
    ASSIGN_OR_RETURN(Block block, ParseBlock({}));
    if (stream_.Peek().kind != Kind::kEnd) return stream_.Unexpected("the end of the template");
    return block;
  }

 private:
  absl::Status EndTag() { return stream_.Expect(Kind::kBlockEnd, "'%}'"); }

  // {% name %}, where ParseBlock has stopped.
  absl::Status EndStatement(std::string_view name) {
    RETURN_IF_ERROR(stream_.Expect(Kind::kBlockBegin, StrCat("{% ", name, " %}")));
    RETURN_IF_ERROR(stream_.ExpectName(name));
    return EndTag();
  }

  bool AtTag(EndNames names) const {
    if (stream_.Peek().kind != Kind::kBlockBegin) return false;
    for (const std::string_view name : names) {
      if (stream_.Peek(1).IsName(name)) return true;
    }
    return false;
  }

  // Statements up to a tag with one of `ends`, which is left, or to the end of the template.
  absl::StatusOr<Block> ParseBlock(EndNames ends) {
    const TokenStream::Nested nested(&stream_);
    RETURN_IF_ERROR(nested.status());
    Block block;
    while (stream_.Peek().kind != Kind::kEnd && !AtTag(ends)) {
      const Token token = stream_.Take();
      if (token.kind == Kind::kData) {
        block.push_back(std::make_unique<Data>(std::string(token.text), token.line));
      } else if (token.kind == Kind::kPrintBegin) {
        ASSIGN_OR_RETURN(ExpressionPtr expression, expressions_.ParseSequence());
        RETURN_IF_ERROR(stream_.Expect(Kind::kPrintEnd, "'}}'"));
        block.push_back(std::make_unique<Print>(std::move(expression), token.line));
      } else {
        RETURN_IF_ERROR(ParseStatement(&block));
      }
    }
    return block;
  }

  absl::Status ParseStatement(Block* block) {
    const Token name = stream_.Peek();
    RETURN_IF_ERROR(stream_.Expect(Kind::kName, "the name of a statement"));
    if (name.text == "generation") return ParseGeneration(block);
    ASSIGN_OR_RETURN(StatementPtr statement, ParseNamedStatement(name));
    block->push_back(std::move(statement));
    return absl::OkStatus();
  }

  absl::StatusOr<StatementPtr> ParseNamedStatement(const Token& name) {
    if (name.text == "set") return ParseSet(name.line);
    if (name.text == "if") return ParseIf(name.line);
    if (name.text == "for") return ParseFor(name.line);
    if (name.text == "macro") return ParseMacro(name.line);
    if (name.text == "call") return ParseCall(name.line);
    if (name.text == "filter") return ParseFilterBlock(name.line);
    if (name.text == "break") return ParseJump(Statement::Kind::kBreak, name);
    if (name.text == "continue") return ParseJump(Statement::Kind::kContinue, name);
    return Error("line ", name.line, ": unknown statement '", name.text.substr(0, 40), "'");
  }

  // Marks what the assistant wrote, for training; the content is all that counts here.
  absl::Status ParseGeneration(Block* block) {
    RETURN_IF_ERROR(EndTag());
    ASSIGN_OR_RETURN(Block body, ParseBlock({"endgeneration"}));
    for (StatementPtr& statement : body) block->push_back(std::move(statement));
    return EndStatement("endgeneration");
  }

  // From the end of the opening tag to the end of the closing one: a block whose output is captured, so that
  // it can neither end nor continue a loop around it.
  absl::StatusOr<Block> ParseEnclosed(std::string_view end) {
    RETURN_IF_ERROR(EndTag());
    const int loops = std::exchange(loops_, 0);
    ASSIGN_OR_RETURN(Block body, ParseBlock({end}));
    loops_ = loops;
    RETURN_IF_ERROR(EndStatement(end));
    return body;
  }

  absl::StatusOr<std::string> ParseName(std::string_view what) {
    std::string name(stream_.Peek().text);
    RETURN_IF_ERROR(stream_.Expect(Kind::kName, what));
    return name;
  }

  absl::StatusOr<Target> ParseTarget() {
    Target target;
    const bool parenthesised = stream_.TakeOperator("(");
    do {
      if (target.unpacks && stream_.Peek().kind != Kind::kName) break;  // a comma at the end
      ASSIGN_OR_RETURN(std::string name, ParseName("a name to assign to"));
      target.names.push_back(std::move(name));
      target.unpacks = target.unpacks || stream_.Peek().IsOperator(",");
    } while (stream_.TakeOperator(","));
    if (parenthesised) RETURN_IF_ERROR(stream_.ExpectOperator(")"));
    return target;
  }

  absl::StatusOr<StatementPtr> ParseSet(int line) {
    auto set = std::make_unique<Set>(line);
    ASSIGN_OR_RETURN(set->target, ParseTarget());
    if (!set->target.unpacks && stream_.TakeOperator(".")) {
      ASSIGN_OR_RETURN(std::string attribute, ParseName("an attribute to assign to"));
      set->target.attribute = Value::Literal(std::move(attribute));
    }
    if (stream_.TakeOperator("=")) {
      ASSIGN_OR_RETURN(set->value, expressions_.ParseSequence());
      RETURN_IF_ERROR(EndTag());
      return set;
    }
    if (stream_.TakeOperator("|")) {
      ASSIGN_OR_RETURN(set->filters, expressions_.ParseFilters());
    }
    ASSIGN_OR_RETURN(set->body, ParseEnclosed("endset"));
    return set;
  }

  absl::StatusOr<StatementPtr> ParseIf(int line) {
    auto statement = std::make_unique<If>(line);
    while (true) {
      ASSIGN_OR_RETURN(ExpressionPtr condition, expressions_.ParseSequence());
      RETURN_IF_ERROR(EndTag());
      ASSIGN_OR_RETURN(Block body, ParseBlock({"elif", "else", "endif"}));
      statement->branches.emplace_back(std::move(condition), std::move(body));
      if (!AtTag({"elif"})) break;
      stream_.Take();
      stream_.Take();
    }
    if (AtTag({"else"})) {
      RETURN_IF_ERROR(EndStatement("else"));
      ASSIGN_OR_RETURN(statement->otherwise, ParseBlock({"endif"}));
    }
    RETURN_IF_ERROR(EndStatement("endif"));
    return statement;
  }

  absl::StatusOr<StatementPtr> ParseFor(int line) {
    auto statement = std::make_unique<For>(line);
    ASSIGN_OR_RETURN(statement->target, ParseTarget());
    RETURN_IF_ERROR(stream_.ExpectName("in"));
    ASSIGN_OR_RETURN(statement->items, expressions_.ParseWithoutCondition());
    if (stream_.TakeName("if")) {
      ASSIGN_OR_RETURN(statement->condition, expressions_.Parse());
    }
    RETURN_IF_ERROR(EndTag());
    ++loops_;
    ASSIGN_OR_RETURN(statement->body, ParseBlock({"else", "endfor"}));
    --loops_;
    if (AtTag({"else"})) {
      RETURN_IF_ERROR(EndStatement("else"));
      ASSIGN_OR_RETURN(statement->otherwise, ParseBlock({"endfor"}));
    }
    RETURN_IF_ERROR(EndStatement("endfor"));
    return statement;
  }

  // (name, name = default): the opening parenthesis is behind.
  absl::Status ParseParameters(Macro* macro) {
    while (!stream_.TakeOperator(")")) {
      if (!macro->parameters.empty()) RETURN_IF_ERROR(stream_.ExpectOperator(","));
      ASSIGN_OR_RETURN(std::string name, ParseName("the name of a parameter"));
      for (const auto& [other, unused] : macro->parameters) {
        if (other == name) return stream_.ErrorHere("the parameter '", name, "' occurs twice");
      }
      ExpressionPtr initial;
      if (stream_.TakeOperator("=")) {
        ASSIGN_OR_RETURN(initial, expressions_.Parse());
      } else if (!macro->parameters.empty() && macro->parameters.back().second != nullptr) {
        return stream_.ErrorHere("the parameter '", name, "' has no default but follows one that has");
      }
      macro->parameters.emplace_back(std::move(name), std::move(initial));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StatementPtr> ParseMacro(int line) {
    auto macro = std::make_unique<Macro>(line);
    ASSIGN_OR_RETURN(macro->name, ParseName("the name of a macro"));
    RETURN_IF_ERROR(stream_.ExpectOperator("("));
    RETURN_IF_ERROR(ParseParameters(macro.get()));
    ASSIGN_OR_RETURN(macro->body, ParseEnclosed("endmacro"));
    return macro;
  }

  absl::StatusOr<StatementPtr> ParseCall(int line) {
    auto call = std::make_unique<Call>(line);
    call->caller = std::make_unique<Macro>(line);
    call->caller->name = "caller";
    if (stream_.TakeOperator("(")) RETURN_IF_ERROR(ParseParameters(call->caller.get()));
    ASSIGN_OR_RETURN(call->call, expressions_.ParseUnfiltered());
    const bool is_call = call->call->kind == Expression::Kind::kPostfix &&
                         static_cast<const Postfix&>(*call->call).suffixes.back().kind == Suffix::Kind::kCall;
    if (!is_call) return Error("line ", line, ": {% call %} needs the call of a macro");
    ASSIGN_OR_RETURN(call->caller->body, ParseEnclosed("endcall"));
    return call;
  }

  absl::StatusOr<StatementPtr> ParseFilterBlock(int line) {
    auto block = std::make_unique<FilterBlock>(line);
    ASSIGN_OR_RETURN(block->filters, expressions_.ParseFilters());
    ASSIGN_OR_RETURN(block->body, ParseEnclosed("endfilter"));
    return block;
  }

  absl::StatusOr<StatementPtr> ParseJump(Statement::Kind kind, const Token& name) {
    if (loops_ == 0)
      return Error("line ", name.line, ": '", name.text,
                   "' outside of a loop, or in a block inside it whose output is captured");
    RETURN_IF_ERROR(EndTag());
    return std::make_unique<Jump>(kind, name.line);
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  int loops_ = 0;  // for statements around this place
};

}  // namespace

absl::StatusOr<Block> Parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return Error("a template of ", source.size(), " bytes is over the limit of ", kMaxSourceBytes);
  }
  if (!IsValidUtf8(source)) return Error("the template is not UTF-8");
  const std::string lines = absl::StrReplaceAll(AbslView(source), {{"\r\n", "\n"}, {"\r", "\n"}});
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(lines));
  return Parser(std::move(tokens)).Run();
}

}  // namespace baton::jinja
