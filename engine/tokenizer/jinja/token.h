#ifndef BATON_ENGINE_TOKENIZER_JINJA_TOKEN_H_
#define BATON_ENGINE_TOKENIZER_JINJA_TOKEN_H_

#include <string_view>

namespace baton::jinja {

// A piece of a template's source. `text` points into the source that was given to the lexer.
struct Token {
  enum class Kind {
    kData,        // text outside of tags, white space control already applied
    kBlockBegin,  // {%
    kBlockEnd,    // %}
    kPrintBegin,  // {{
    kPrintEnd,    // }}
    kName,
    kString,  // with its quotes and escapes as written
    kInteger,
    kFloat,
    kOperator,  // punctuation, too: "==", "(", ","
    kEnd,
  };

  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 0;  // from 1

  bool IsOperator(std::string_view op) const { return kind == Kind::kOperator && text == op; }
  bool IsName(std::string_view name) const { return kind == Kind::kName && text == name; }
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_TOKEN_H_
