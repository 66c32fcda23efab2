#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/filters.h"
#include "engine/tokenizer/jinja/format.h"
#include "engine/tokenizer/jinja/text_operations.h"

namespace baton::jinja {
namespace {

using Result = absl::StatusOr<Value>;

constexpr int64_t kMaxIndentWidth = 256;

// A filter that maps the printed form of its input and takes no arguments.
template <Text (*kMap)(const Text&)>
Result MapText(const Value& input, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("a filter", arguments, {}).status());
  ASSIGN_OR_RETURN(const Text text, Printed(input, &context->budget));
  return MakeString(kMap(text), &context->budget);
}

Text Identity(const Text& text) { return text; }
Text TitleWords(const Text& text) { return TitleText(text, /*by_spaces=*/true); }

std::string_view HtmlEscape(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&#34;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

Text EscapeHtml(const Text& text) {
  Text escaped;
  size_t copied = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view escape = HtmlEscape(text.bytes()[at]);
    if (escape.empty()) continue;
    escaped.Append(text, copied, at);
    escaped.Append(escape, text.OriginOf(at, at + 1));
    copied = at + 1;
  }
  escaped.Append(text, copied, text.size());
  return escaped;
}

Result Safe(const Value& input, const Arguments& arguments, Context*) {
  RETURN_IF_ERROR(BoundArguments::Bind("safe", arguments, {}).status());
  return input;
}

Result Trim(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("trim", arguments, {"chars"}));
  ASSIGN_OR_RETURN(const Text* characters, bound.OptionalText(0));
  ASSIGN_OR_RETURN(const Text text, Printed(input, &context->budget));
  if (characters == nullptr) return MakeString(text.Strip(true, true), &context->budget);
  RETURN_IF_ERROR(context->budget.Scan(text.size() * characters->size()));
  return MakeString(text.Strip(characters->bytes(), true, true), &context->budget);
}

Result Replace(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("replace", arguments, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const Text* from, bound.RequiredText(0));
  ASSIGN_OR_RETURN(const Text* to, bound.RequiredText(1));
  ASSIGN_OR_RETURN(const int64_t count, bound.IntegerOr(2, -1));
  ASSIGN_OR_RETURN(const Text text, Printed(input, &context->budget));
  ASSIGN_OR_RETURN(Text replaced, ReplaceText(text, *from, *to, count, &context->budget));
  return MakeString(std::move(replaced), &context->budget);
}

// Indents each line but the first and the empty ones, unless told otherwise.
Result Indent(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("indent", arguments, {"width", "first", "blank"}));
  Text indent;
  if (const Text* width = bound[0].text()) {
    indent = *width;
  } else {
    ASSIGN_OR_RETURN(const int64_t columns, bound.IntegerOr(0, 4));
    if (columns < 0 || columns > kMaxIndentWidth) {
      return Error("indent: the width ", columns, " is not in 0 .. ", kMaxIndentWidth);
    }
    indent = Text(std::string(columns, ' '), Origin::kTemplate);
  }
  ASSIGN_OR_RETURN(const bool first, bound.BooleanOr(1, false));
  ASSIGN_OR_RETURN(const bool blank, bound.BooleanOr(2, false));
  ASSIGN_OR_RETURN(const Text text, Printed(input, &context->budget));
  const std::string_view bytes = text.bytes();
  Text indented;
  for (size_t begin = 0; begin <= bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const bool indents = (begin == 0 ? first : true) && (blank || end > begin || begin == 0);
    if (indents) {
      RETURN_IF_ERROR(context->budget.Allocate(indent.size()));
      indented.Append(indent);
    }
    indented.Append(text, begin, std::min(end + 1, bytes.size()));
    if (indented.size() > kMaxTextBytes)
      return Error("indent: the result is over the limit of ", kMaxTextBytes, " bytes");
    begin = end + 1;
  }
  return MakeString(std::move(indented), &context->budget);
}

Result ToJsonFilter(const Value& input, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonOptions options;
  ASSIGN_OR_RETURN(options.ensure_ascii, bound.BooleanOr(0, false));
  ASSIGN_OR_RETURN(options.indent, bound.IntegerOr(1, 0));
  ASSIGN_OR_RETURN(options.sort_keys, bound.BooleanOr(3, false));
  if (options.indent > 0) options.item_separator = Text(",", Origin::kTemplate);
  if (bound.has(2) && !bound[2].is(Value::Kind::kNone)) {
    const List* separators = bound[2].list();
    const bool two_strings = separators != nullptr && separators->items.size() == 2 &&
                             separators->items[0].text() != nullptr && separators->items[1].text() != nullptr;
    if (!two_strings) return Error("tojson: the separators must be two strings");
    options.item_separator = *separators->items[0].text();
    options.key_separator = *separators->items[1].text();
  }
  ASSIGN_OR_RETURN(Text json, ToJson(input, options, &context->budget));
  return MakeString(std::move(json), &context->budget);
}

}  // namespace

Filter FindTextFilter(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, Filter>;
  static const Table* const kTable = new Table{
      {"string", MapText<Identity>},
      {"upper", MapText<UpperText>},
      {"lower", MapText<LowerText>},
      {"title", MapText<TitleWords>},
      {"capitalize", MapText<CapitalizeText>},
      {"escape", MapText<EscapeHtml>},
      {"e", MapText<EscapeHtml>},
      {"forceescape", MapText<EscapeHtml>},
      {"safe", Safe},
      {"trim", Trim},
      {"replace", Replace},
      {"indent", Indent},
      {"tojson", ToJsonFilter},
  };
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace baton::jinja
