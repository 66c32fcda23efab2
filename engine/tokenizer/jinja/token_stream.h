#ifndef BATON_ENGINE_TOKENIZER_JINJA_TOKEN_STREAM_H_
#define BATON_ENGINE_TOKENIZER_JINJA_TOKEN_STREAM_H_

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/limits.h"
#include "engine/tokenizer/jinja/token.h"

namespace baton::jinja {

// The tokens of one template with a position in them, and how deep the parser is nested there. Shared by the
// two parsers of statements and of expressions while a template is parsed.
class TokenStream {
 public:
  // The last token is kEnd.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  Token Take() {
    const Token token = Peek();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  int line() const { return Peek().line; }

  bool TakeOperator(std::string_view op) { return TakeIf(Peek().IsOperator(op)); }
  bool TakeName(std::string_view name) { return TakeIf(Peek().IsName(name)); }

  absl::Status ExpectOperator(std::string_view op) {
    return TakeOperator(op) ? absl::OkStatus() : Unexpected(op);
  }
  absl::Status ExpectName(std::string_view name) {
    return TakeName(name) ? absl::OkStatus() : Unexpected(name);
  }
  absl::Status Expect(Token::Kind kind, std::string_view what) {
    return TakeIf(Peek().kind == kind) ? absl::OkStatus() : Unexpected(what);
  }

  template <typename... Parts>
  absl::Status ErrorHere(const Parts&... reason) const {
    return Error("line ", line(), ": ", reason...);
  }
  absl::Status Unexpected(std::string_view expected) const {
    const Token& token = Peek();
    switch (token.kind) {
      case Token::Kind::kEnd:
        return ErrorHere("expected ", expected, ", not the end of the template");
      case Token::Kind::kData:
        return ErrorHere("expected ", expected, ", not text");
      case Token::Kind::kBlockEnd:
      case Token::Kind::kPrintEnd:
        return ErrorHere("expected ", expected, ", not the end of the tag");
      default:
        return ErrorHere("expected ", expected, ", not '", token.text.substr(0, 40), "'");
    }
  }

  // Counts one level of nesting for as long as it lives; check `status` first.
  class Nested {
   public:
    explicit Nested(TokenStream* stream) : stream_(stream) { ++stream_->nesting_; }
    ~Nested() { --stream_->nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    absl::Status status() const {
      if (stream_->nesting_ <= kMaxParseNesting) return absl::OkStatus();
      return stream_->ErrorHere("the template nests deeper than the limit of ", kMaxParseNesting);
    }

   private:
    TokenStream* const stream_;
  };

 private:
  bool TakeIf(bool condition) {
    if (condition) Take();
    return condition;
  }

  const std::vector<Token> tokens_;
  size_t position_ = 0;
  int nesting_ = 0;
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_TOKEN_STREAM_H_
