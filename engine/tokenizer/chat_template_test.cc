#include "engine/tokenizer/chat_template.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>

namespace baton {
namespace {

absl::StatusOr<std::vector<TextRun>> Render(std::string_view source,
                                            const std::vector<ChatMessage>& messages) {
  const absl::StatusOr<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::Create(source);
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render(messages,
                           {.bos_token = "<s>", .eos_token = "</s>", .now = absl::FromUnixSeconds(0)});
}

// The rendered runs, message text in brackets; or the error.
std::string Marked(std::string_view source, const std::string& content = "uSeR") {
  const auto runs = Render(source, {{.role = "user", .content = content}});
  if (!runs.ok())
    return "error: " + std::string(runs.status().message().data(), runs.status().message().size());
  std::string marked;
  for (const TextRun& run : *runs) marked += run.allow_control ? run.text : "[" + run.text + "]";
  return marked;
}

// `expression` over c, the content, printed between two characters of the template.
std::string MarkedExpression(const std::string& expression, const std::string& content = "uSeR") {
  return Marked("{% set c = messages[0].content %}<{{ " + expression + " }}>", content);
}

std::string Repeat(const std::string& piece, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += piece;
  return repeated;
}

struct ProvenanceCase {
  const char* expression;
  const char* marked;
  const char* content = "uSeR";
};

class ProvenanceTest : public testing::TestWithParam<ProvenanceCase> {};

TEST_P(ProvenanceTest, MarksMessageText) {
  EXPECT_EQ(MarkedExpression(GetParam().expression, GetParam().content), GetParam().marked)
      << GetParam().expression;
}

INSTANTIATE_TEST_SUITE_P(
    Exact, ProvenanceTest,
    testing::Values(
        ProvenanceCase{"c", "<[uSeR]>"}, ProvenanceCase{"messages[0].role + ':' + c", "<[user]:[uSeR]>"},
        ProvenanceCase{"'a' ~ c ~ 1", "<a[uSeR]1>"}, ProvenanceCase{"(' ' + c + ' ') | trim", "<[uSeR]>"},
        ProvenanceCase{"('x' + c + 'y')[1:-1]", "<[uSeR]>"}, ProvenanceCase{"('x' + c)[::-1]", "<[ReSu]x>"},
        ProvenanceCase{"('x' + c)[0]", "<x>"}, ProvenanceCase{"('x' + c)[1]", "<[u]>"},
        ProvenanceCase{"('x' + c) | upper", "<X[USER]>"}, ProvenanceCase{"('X' + c).lower()", "<x[user]>"},
        ProvenanceCase{"(c + ' x') | title", "<[User] X>"},
        ProvenanceCase{"(c + 'X') | capitalize", "<[User]x>"},
        ProvenanceCase{"('a,' + c + ',b').split(',') | join('|')", "<a|[uSeR]|b>"},
        ProvenanceCase{"('a,' + c).rsplit(',', 1)[1]", "<[uSeR]>"},
        ProvenanceCase{"c.join(['a', 'b'])", "<a[uSeR]b>"},
        ProvenanceCase{"['a', c] | join('-')", "<a-[uSeR]>"}, ProvenanceCase{"'{}!'.format(c)", "<[uSeR]!>"},
        ProvenanceCase{"[c, 1] | tojson", "<[\"[uSeR]\", 1]>"}, ProvenanceCase{"{c: 1}", "<{\"[uSeR]\": 1}>"},
        ProvenanceCase{"c | indent(1, true)", "< [a\n]>", "a\n"}, ProvenanceCase{"c | e", "<[&lt;]>", "<"},
        ProvenanceCase{"[c, 'b'] | sort | join", "<b[uSeR]>"},
        ProvenanceCase{"c | list | join('.')", "<[u].[S].[e].[R]>"}, ProvenanceCase{"c * 2", "<[uSeRuSeR]>"},
        ProvenanceCase{"nothing | default(c)", "<[uSeR]>"},
        ProvenanceCase{"[c] | map('upper') | first", "<[USER]>"}, ProvenanceCase{"c | string", "<[uSeR]>"},
        ProvenanceCase{"c.removeprefix('u').removesuffix('R')", "<[Se]>"},
        ProvenanceCase{"[c] | batch(2) | first | first", "<[uSeR]>"},
        ProvenanceCase{"namespace(a=c).a", "<[uSeR]>"},
        ProvenanceCase{"dict(a=c).items()", "<[[\"a\", \"[uSeR]\"]]>"},
        ProvenanceCase{"[c, 'z'] | max", "<z>"}, ProvenanceCase{"[c] | unique | last", "<[uSeR]>"}));

// Where text is exchanged or read as something else, whatever may come from a user counts as theirs.
INSTANTIATE_TEST_SUITE_P(Careful, ProvenanceTest,
                         testing::Values(ProvenanceCase{"c | replace('S', '|im_end|')", "<[u|im_end|eR]>"},
                                         ProvenanceCase{"c.replace('', '-')", "<-[u]-[S]-[e]-[R]->"},
                                         ProvenanceCase{"'a-b' | replace('-', c)", "<a[uSeR]b>"},
                                         ProvenanceCase{"('-' + c) | replace('-', '+')", "<+[uSeR]>"},
                                         ProvenanceCase{"('a' + c) | replace('au', 'x')", "<[xSeR]>"},
                                         ProvenanceCase{"('x' + c) | upper", "<[XSS]>", "\u00df"},
                                         ProvenanceCase{"c | int + 1", "<[43]>", "42"},
                                         ProvenanceCase{"c | float", "<[4.5]>", "4.5"},
                                         ProvenanceCase{"range(c | int, 9)[0]", "<[7]>", "7"},
                                         ProvenanceCase{"-(c | int) | abs", "<[7]>", "7"},
                                         ProvenanceCase{"[c | int] | sum", "<[7]>", "7"},
                                         ProvenanceCase{"strftime_now(c)", "<[|im_end|1970]>", "|im_end|%Y"},
                                         ProvenanceCase{"c | length", "<4>"}));

TEST(ChatTemplateTest, ProvenanceThroughStatements) {
  EXPECT_EQ(Marked("{% macro m(x) %}a{{ x }}{% endmacro %}{{ m(messages[0].content) }}b"), "a[uSeR]b");
  EXPECT_EQ(Marked("{% set x %}a{{ messages[0].content }}{% endset %}{{ x | upper }}"), "A[USER]");
  EXPECT_EQ(Marked("{% filter trim %} {{ messages[0].content }} x{% endfilter %}"), "[uSeR] x");
  EXPECT_EQ(Marked("{% for x in messages[0].content %}{{ x }}.{% endfor %}"), "[u].[S].[e].[R].");
  EXPECT_EQ(Marked("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}"),
            "role=[user];content=[uSeR];");
}

TEST(ChatTemplateTest, KeepsJinjasMeaningWhereTheOracleDiffers) {
  EXPECT_EQ(MarkedExpression("1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, '1' == 1, [1] == [1]"),
            "<[true, false, true, false, true]>");
  EXPECT_EQ(MarkedExpression("-7 % 3, 7 % -3, -7 // 2, 7.5 % 2"), "<[2, -2, -4, 1.5]>");
  EXPECT_EQ(MarkedExpression("[2.5, 0.5, -1.5] | map('round') | join(',')"), "<2.0,0.0,-2.0>");
  EXPECT_EQ(MarkedExpression("2.675 | round(2), 2.1 | round(0, 'ceil'), 42 | round(-1)"), "<[2.67, 3, 40]>");
  EXPECT_EQ(MarkedExpression("[1, 2] | sum, [1, 2] | min, ['b', 'A'] | min, [] | max is defined"),
            "<[3, 1, \"A\", false]>");
  EXPECT_EQ(MarkedExpression("[1, 2, 3] | select('odd') | list, [1, 2, 3] | reject('gt', 1) | list"),
            "<[[1, 3], [1]]>");
  EXPECT_EQ(MarkedExpression("6 is divisibleby 3, 2 is in [2], 'a' is eq 'a', 1 is sameas true"),
            "<[true, true, true, false]>");
  EXPECT_EQ(MarkedExpression("[1, 2, 3] | batch(2, 0) | list"), "<[[1, 2], [3, 0]]>");
  EXPECT_EQ(MarkedExpression("'a b'.find('b'), 'aXbX'.rfind('X'), 'aa'.count('a'), 'ab'.index is defined"),
            "<[2, 3, 2, false]>");
  EXPECT_EQ(MarkedExpression("none | selectattr('x') | list, nothing | map('upper') | list"), "<[[], []]>");
  EXPECT_EQ(Marked("{% for i in [1, 2] %}{{ y }}{% set y = i %}{% endfor %}|"), "|");
  EXPECT_EQ(Marked("{% for i in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{% endfor %}"), "aba");
}

TEST(ChatTemplateTest, UndefinedIsLenientOnce) {
  EXPECT_EQ(Marked("a{{ tools }}{{ messages[0].tool_calls }}b"), "ab");
  EXPECT_EQ(Marked("{% for x in tools %}x{% endfor %}b"), "b");
  EXPECT_EQ(Marked("\n{{ tools.x }}"), "error: line 2: the attribute 'x' of an undefined value");
  EXPECT_EQ(Marked("{{ documents() }}"), "error: line 1: an undefined value cannot be called");
}

TEST(ChatTemplateTest, RaiseExceptionIsAnError) {
  EXPECT_EQ(Marked("x\n{% if true %}\n{{ raise_exception('roles ' + messages[0].role) }}{% endif %}"),
            "error: line 3: the template refuses the conversation: roles user");
}

TEST(ChatTemplateTest, RefusesBadUtf8) {
  EXPECT_EQ(ChatTemplate::Create("\xff").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Marked("{{ 1 }}", "\xc3"), "error: messages[0].content is not UTF-8");
}

TEST(ChatTemplateTest, CreateRefusesWithTheLine) {
  EXPECT_EQ(Marked("\n{% include 'x' %}"), "error: line 2: unknown statement 'include'");
  EXPECT_EQ(Marked("{% break %}").substr(0, 36), "error: line 1: 'break' outside of a ");
  EXPECT_EQ(Marked("{% if 1 %}"), "error: line 1: expected {% endif %}, not the end of the template");
  EXPECT_EQ(Marked("{{ '\\ud800' }}"), "error: line 1: an escape in a string names no character");
  EXPECT_EQ(Marked("{{ 9223372036854775808 }}"),
            "error: line 1: the integer 9223372036854775808 is over 64 bits");
}

struct LimitCase {
  const char* name;
  std::string source;
  const char* error;  // what the status must contain
  std::string content = "x";
};

class LimitTest : public testing::TestWithParam<LimitCase> {};

// Runs `body` on a stack of 1 MiB, which is what the interpreter promises to be content with; sanitizers'
// frames are larger.
void RunOnSmallStack(const std::function<void()>& body) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kStackBytes = 8 << 20;
#else
  constexpr size_t kStackBytes = 1 << 20;
#endif
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST_P(LimitTest, EndsWithAStatus) {
  RunOnSmallStack([] {
    const std::string result = Marked(GetParam().source, GetParam().content);
    EXPECT_NE(result.find(GetParam().error), std::string::npos) << result.substr(0, 200);
    EXPECT_EQ(result.find("error: "), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Parsing, LimitTest,
    testing::Values(
        LimitCase{"Parentheses", "{{ " + Repeat("(", 100'000) + "1" + Repeat(")", 100'000) + " }}",
                  "nests deeper than the limit of 100"},
        LimitCase{"Lists", "{{ " + Repeat("[", 100'000) + "1" + Repeat("]", 100'000) + " }}", "nests deeper"},
        LimitCase{"Signs", "{{ " + Repeat("-", 100'000) + "1 }}", "nests deeper"},
        LimitCase{"Nots", "{{ " + Repeat("not ", 50'000) + "1 }}", "nests deeper"},
        LimitCase{"Conditionals", "{{ " + Repeat("1 if 0 else ", 10'000) + "1 }}", "nests deeper"},
        LimitCase{"Calls", "{{ " + Repeat("f(", 50'000) + "1" + Repeat(")", 50'000) + " }}", "nests deeper"},
        LimitCase{"Subscripts", "{{ " + Repeat("a[", 50'000) + "1" + Repeat("]", 50'000) + " }}",
                  "nests deeper"},
        LimitCase{"Blocks", Repeat("{% if 1 %}", 20'000), "nests deeper"},
        LimitCase{"Source", std::string(300'000, 'x'),
                  "a template of 300000 bytes is over the limit of 262144"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Rendering, LimitTest,
    testing::Values(
        LimitCase{"Recursion", "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
                  "nests deeper than the limit of 300"},
        LimitCase{"DeepRecursion",
                  "{% macro f(n) %}" + Repeat("{% if 1 %}{% for i in [1] %}", 40) + "{{ [[[f(n)]]] }}" +
                      Repeat("{% endfor %}{% endif %}", 40) + "{% endmacro %}{{ f(0) }}",
                  "nests deeper than the limit of 300"},
        LimitCase{"Steps", "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
                  "limit of"},
        LimitCase{"Range", "{{ range(100001) }}", "100001 items are over the limit of 100000"},
        LimitCase{"HugeRange", "{{ range(-9223372036854775807, 9223372036854775807) }}",
                  "over the limit of 100000"},
        LimitCase{"RepeatedString", "{{ 'ab' * 9000000 }}", "over the limit of 16777216"},
        LimitCase{
            "DoubledString",
            "{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s + n.s %}{% endfor %}",
            "over the limit of 16777216"},
        LimitCase{"Output", "{% for i in range(99999) %}" + std::string(200, 'x') + "{% endfor %}",
                  "over the limit of 16777216"},
        LimitCase{
            "Memory",
            "{% set n = namespace(l=[]) %}{% for i in range(90000) %}{% set n.l = n.l + [i] %}{% endfor %}",
            "limit of 268435456 bytes"},
        LimitCase{"ReplaceGrows", "{{ messages[0].content | replace('', messages[0].content) }}", "limit of",
                  std::string(20'000, 'x')},
        LimitCase{"DeepValue",
                  "{% set n = namespace(l=[]) %}{% for i in range(99) %}{% set n.l = [n.l] %}{% endfor %}",
                  "deeper than the limit of 32"},
        LimitCase{"WideValue",
                  "{% set n = namespace(l=[1]) %}{% for i in range(30) %}{% set n.l = [n.l, n.l] %}{% endfor "
                  "%}{{ n.l }}",
                  "limit of"},
        LimitCase{"WideComparison",
                  "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(30) %}{% set n.a = [n.a, n.a] %}{% "
                  "set n.b = [n.b, n.b] %}"
                  "{% endfor %}{{ n.a == n.b }}",
                  "evaluation steps"},
        LimitCase{"NamespaceCycle", "{% set n = namespace() %}{% set n.x = [n] %}",
                  "a namespace cannot hold another namespace"},
        LimitCase{"IntegerOverflow", "{{ 9223372036854775807 + 1 }}", "over 64 bits"},
        LimitCase{"FloorOverflow", "{{ (-9223372036854775807 - 1) // -1 }}", "over 64 bits"},
        LimitCase{"FloatOverflow", "{{ 1e308 * 10 }}", "not a finite number"},
        LimitCase{"Division", "{{ 1 % 0 }}", "division by zero"},
        LimitCase{"Indent", "{{ [1] | tojson(indent=9999) }}", "indent 9999 is not in 0 .. 64"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ChatTemplateTest, RendersALongConversation) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 2000; ++i) messages.push_back({.role = "user", .content = std::string(1000, 'x')});
  const auto runs =
      Render("{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] | trim + '\n' }}{% endfor %}",
             messages);
  ASSERT_TRUE(runs.ok()) << runs.status();
  // Role, ">", content and "\n<" of each, and the first "<".
  EXPECT_EQ(runs->size(), 2000 * 4 + 1);
}

TEST(ChatTemplateTest, LongChainsAreNotDeep) {
  EXPECT_EQ(MarkedExpression("'a'" + Repeat(" + 'b'", 5000)).size(), 5003);
  EXPECT_EQ(MarkedExpression("0" + Repeat(" + 1", 5000)), "<5000>");
  EXPECT_EQ(Marked("{% if 0 %}" + Repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}"), "x");
}

}  // namespace
}  // namespace baton
