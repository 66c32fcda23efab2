#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/methods.h"
#include "engine/tokenizer/jinja/operators.h"
#include "engine/tokenizer/jinja/text_operations.h"

namespace baton::jinja {
namespace {

using Result = absl::StatusOr<Value>;
using Method = Result (*)(const Text& text, const Arguments& arguments, Context* context);

template <Text (*kMap)(const Text&)>
Result MapText(const Text& text, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("a method", arguments, {}).status());
  return MakeString(kMap(text), &context->budget);
}

Text TitleLetters(const Text& text) { return TitleText(text, /*by_spaces=*/false); }

template <bool kStart, bool kEnd>
Result Strip(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("strip", arguments, {"chars"}));
  ASSIGN_OR_RETURN(const Text* characters, bound.OptionalText(0));
  if (characters == nullptr) return MakeString(text.Strip(kStart, kEnd), &context->budget);
  RETURN_IF_ERROR(context->budget.Scan(text.size() * characters->size()));
  return MakeString(text.Strip(characters->bytes(), kStart, kEnd), &context->budget);
}

template <bool kFromEnd>
Result Split(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("split", arguments, {"sep", "maxsplit"}));
  ASSIGN_OR_RETURN(const Text* separator, bound.OptionalText(0));
  ASSIGN_OR_RETURN(const int64_t count, bound.IntegerOr(1, -1));
  return kFromEnd ? SplitTextFromEnd(text, separator, count, &context->budget)
                  : SplitText(text, separator, count, &context->budget);
}

Result SplitLinesMethod(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("splitlines", arguments, {"keepends"}));
  ASSIGN_OR_RETURN(const bool keep_ends, bound.BooleanOr(0, false));
  return SplitLines(text, keep_ends, &context->budget);
}

// startswith, endswith: one string, or a list of which one is enough.
template <bool kAtStart>
Result HasAffix(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("startswith, endswith", arguments, {"affix"}, 1));
  const std::vector<Value> affixes =
      bound[0].list() != nullptr ? bound[0].list()->items : std::vector<Value>{bound[0]};
  for (const Value& affix : affixes) {
    if (affix.text() == nullptr)
      return Error("startswith, endswith: a string is wanted, not ", affix.KindName());
    RETURN_IF_ERROR(context->budget.Scan(affix.text()->size()));
    const std::string_view bytes = affix.text()->bytes();
    if (kAtStart ? text.bytes().starts_with(bytes) : text.bytes().ends_with(bytes))
      return Value::Boolean(true);
  }
  return Value::Boolean(false);
}

template <bool kPrefix>
Result RemoveAffix(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("removeprefix", arguments, {"affix"}, 1));
  ASSIGN_OR_RETURN(const Text* affix, bound.RequiredText(0));
  const bool found =
      kPrefix ? text.bytes().starts_with(affix->bytes()) : text.bytes().ends_with(affix->bytes());
  const size_t removed = found ? affix->size() : 0;
  return MakeString(kPrefix ? text.Slice(removed, text.size()) : text.Slice(0, text.size() - removed),
                    &context->budget);
}

Result Replace(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("replace", arguments, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const Text* from, bound.RequiredText(0));
  ASSIGN_OR_RETURN(const Text* to, bound.RequiredText(1));
  ASSIGN_OR_RETURN(const int64_t count, bound.IntegerOr(2, -1));
  ASSIGN_OR_RETURN(Text replaced, ReplaceText(text, *from, *to, count, &context->budget));
  return MakeString(std::move(replaced), &context->budget);
}

// Code points before the match, -1 without one.
Result PositionOf(const Text& text, std::optional<size_t> match) {
  return Value::Int(match ? CountCodePoints(text.bytes().substr(0, *match)) : -1);
}

Result Find(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("find", arguments, {"sub"}, 1));
  ASSIGN_OR_RETURN(const Text* needle, bound.RequiredText(0));
  ASSIGN_OR_RETURN(const std::optional<size_t> match,
                   FindText(text.bytes(), needle->bytes(), 0, &context->budget));
  return PositionOf(text, match);
}

Result FindLast(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("rfind", arguments, {"sub"}, 1));
  ASSIGN_OR_RETURN(const Text* needle, bound.RequiredText(0));
  RETURN_IF_ERROR(context->budget.Scan(text.size() * std::max<size_t>(needle->size(), 1)));
  const size_t match = text.bytes().rfind(needle->bytes());
  return PositionOf(text, match == std::string_view::npos ? std::nullopt : std::optional<size_t>(match));
}

Result Count(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("count", arguments, {"sub"}, 1));
  ASSIGN_OR_RETURN(const Text* needle, bound.RequiredText(0));
  if (needle->empty()) return Value::Int(CountCodePoints(text.bytes()) + 1);
  int64_t count = 0;
  for (size_t from = 0;; ++count) {
    ASSIGN_OR_RETURN(const auto match, FindText(text.bytes(), needle->bytes(), from, &context->budget));
    if (!match) return Value::Int(count);
    from = *match + needle->size();
  }
}

Result Join(const Text& text, const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound, BoundArguments::Bind("join", arguments, {"iterable"}, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> items, ItemsOf(bound[0], &context->budget));
  return JoinValues(items, text, &context->budget);
}

Result Format(const Text& text, const Arguments& arguments, Context* context) {
  return FormatText(text, arguments, &context->budget);
}

bool IsLetterOrDigit(char32_t c) { return IsLetter(c) || IsDigit(c); }

template <bool (*kHolds)(char32_t)>
Result AllAre(const Text& text, const Arguments& arguments, Context* context) {
  RETURN_IF_ERROR(BoundArguments::Bind("a method", arguments, {}).status());
  RETURN_IF_ERROR(context->budget.Scan(text.size()));
  for (size_t at = 0; at < text.size(); at += CodePointBytes(text.bytes(), at)) {
    if (!kHolds(CodePointAt(text.bytes(), at))) return Value::Boolean(false);
  }
  return Value::Boolean(!text.empty());
}

Method FindMethod(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, Method>;
  static const Table* const kTable = new Table{
      {"upper", MapText<UpperText>},
      {"lower", MapText<LowerText>},
      {"capitalize", MapText<CapitalizeText>},
      {"title", MapText<TitleLetters>},
      {"strip", Strip<true, true>},
      {"lstrip", Strip<true, false>},
      {"rstrip", Strip<false, true>},
      {"split", Split<false>},
      {"rsplit", Split<true>},
      {"splitlines", SplitLinesMethod},
      {"startswith", HasAffix<true>},
      {"endswith", HasAffix<false>},
      {"removeprefix", RemoveAffix<true>},
      {"removesuffix", RemoveAffix<false>},
      {"replace", Replace},
      {"find", Find},
      {"rfind", FindLast},
      {"count", Count},
      {"join", Join},
      {"format", Format},
      {"isdigit", AllAre<IsDigit>},
      {"isalpha", AllAre<IsLetter>},
      {"isalnum", AllAre<IsLetterOrDigit>},
      {"isspace", AllAre<IsSpace>},
  };
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace

absl::StatusOr<Value> CallTextMethod(const Value& object, std::string_view name, const Arguments& arguments,
                                     Context* context) {
  const Method method = FindMethod(name);
  if (method == nullptr) return Error("a string has no method '", name.substr(0, 40), "'");
  return method(*object.text(), arguments, context);
}

}  // namespace baton::jinja
