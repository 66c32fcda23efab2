#include "engine/tokenizer/jinja/lexer.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::jinja {
namespace {

// The tokens of a template, data in brackets, joined by spaces.
std::string Tokens(std::string_view source) {
  const absl::StatusOr<std::vector<Token>> tokens = Lex(source);
  if (!tokens.ok()) return std::string(tokens.status().message());
  std::string joined;
  for (const Token& token : *tokens) {
    if (token.kind == Token::Kind::kEnd || token.text.empty()) continue;
    const std::string text(token.text);
    joined += (joined.empty() ? "" : " ") + (token.kind == Token::Kind::kData ? "[" + text + "]" : text);
  }
  return joined;
}

TEST(LexerTest, CutsExpressions) {
  EXPECT_EQ(Tokens("a{{ x.y[1:2]|f('}}', 1.5e3) // 2 }}b"),
            "[a] x . y [ 1 : 2 ] | f ( '}}' , 1.5e3 ) // 2 }} [b]");
  EXPECT_EQ(Tokens("{{ {'a': {}} }}"), "{ 'a' : { } } }}");
  EXPECT_EQ(Tokens("{{ a.0.1 }}{{ 1.x }}{{ 1-2 }}"), "a . 0 . 1 }} 1 . x }} 1 - 2 }}");
}

TEST(LexerTest, BlocksTakeTheLineEndAndTheIndent) {
  EXPECT_EQ(Tokens("a\n  {% x %}\n  b\n"), "[a\n] x %} [  b]");
  EXPECT_EQ(Tokens("a  {% x %} \nb"), "[a  ] x %} [ \nb]");
  EXPECT_EQ(Tokens("  {{ x }}\nb"), "[  ] x }} [\nb]");
  EXPECT_EQ(Tokens("{% x %}\n  {% y %}\n"), "x %} y %}");
  EXPECT_EQ(Tokens("a\n {# c #}\nb"), "[a\n] [b]");
}

TEST(LexerTest, MarksStripOrKeep) {
  EXPECT_EQ(Tokens("a \n {%- x -%} \n b"), "[a] x %} [b]");
  EXPECT_EQ(Tokens("a {{- x -}} b"), "[a] x }} [b]");
  EXPECT_EQ(Tokens("a\n  {%+ x +%}\nb"), "[a\n  ] x %} [\nb]");
  EXPECT_EQ(Tokens("a {#- c -#} b"), "[a] [b]");
}

TEST(LexerTest, RawIsData) {
  EXPECT_EQ(Tokens("a{% raw %}{{ x }}{% if %}{% endraw %}b"), "[a] [{{ x }}{% if %}] [b]");
  EXPECT_EQ(Tokens("{%- raw -%} {{ {%- endraw -%} b"), "[{{] [b]");
}

TEST(LexerTest, ErrorsNameTheLine) {
  EXPECT_EQ(Tokens("\n\n{{ 'a }}"), "line 3: a string is not closed");
  EXPECT_EQ(Tokens("\n{# a"), "line 2: a comment is not closed");
  EXPECT_EQ(Tokens("{{ a"), "line 1: a {{ tag is not closed");
  EXPECT_EQ(Tokens("{% raw %}\n"), "line 1: a raw block is not closed");
  EXPECT_EQ(Tokens("{{ a ? }}"), "line 1: unexpected character '?' in a tag");
}

}  // namespace
}  // namespace baton::jinja
