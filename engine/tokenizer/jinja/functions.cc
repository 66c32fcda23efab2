#include "engine/tokenizer/jinja/functions.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/status_macros.h"
#include "common/string_views.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/format.h"

namespace baton::jinja {
namespace {

// How many integers range(start, stop, step) has; `step` is not 0.
uint64_t RangeSize(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return (distance - 1) / stride + 1;
}

absl::StatusOr<Value> Range(const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("range", arguments, {"start", "stop", "step"}, 1));
  ASSIGN_OR_RETURN(int64_t start, bound.IntegerOr(0, 0));
  ASSIGN_OR_RETURN(int64_t stop, bound.IntegerOr(1, start));
  ASSIGN_OR_RETURN(const int64_t step, bound.IntegerOr(2, 1));
  if (!bound.has(1)) start = 0;
  if (step == 0) return Error("range: the step is zero");
  const uint64_t size = RangeSize(start, stop, step);
  if (size > static_cast<uint64_t>(kMaxRangeItems)) {
    return Error("range: ", size, " items are over the limit of ", kMaxRangeItems);
  }
  RETURN_IF_ERROR(context->budget.Allocate(size * sizeof(Value)));
  const Origin origin =
      Either(bound[0].number_origin(), Either(bound[1].number_origin(), bound[2].number_origin()));
  std::vector<Value> items;
  items.reserve(size);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t item = static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step);
    items.push_back(Value::Int(static_cast<int64_t>(item), origin));
  }
  return MakeList(std::move(items), &context->budget);
}

// The entries that dict(...) and namespace(...) take: those of a mapping, then named ones.
absl::StatusOr<std::vector<Dict::Entry>> EntriesOf(std::string_view callee, const Arguments& arguments) {
  std::vector<Dict::Entry> entries;
  if (arguments.positional.size() > 1) return Error(callee, ": at most one argument without a name is taken");
  if (!arguments.positional.empty()) {
    const Dict* dict = arguments.positional[0].dict();
    if (dict == nullptr) return Error(callee, ": a dict is wanted, not ", arguments.positional[0].KindName());
    entries = dict->entries;
  }
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(Value::Literal(std::string(name)), value);
  }
  return entries;
}

absl::StatusOr<Value> MakeNamespace(const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(std::vector<Dict::Entry> entries, EntriesOf("namespace", arguments));
  RETURN_IF_ERROR(context->budget.Allocate(64));
  auto space = std::make_shared<Namespace>();
  for (auto& [key, value] : entries) {
    if (key.text() == nullptr) return Error("namespace: an attribute cannot be named by ", key.KindName());
    RETURN_IF_ERROR(space->Set(std::move(key), std::move(value), &context->budget));
  }
  return Value::Shared(std::move(space));
}

absl::StatusOr<Value> MakeDictionary(const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(std::vector<Dict::Entry> entries, EntriesOf("dict", arguments));
  return MakeDict(std::move(entries), &context->budget);
}

absl::StatusOr<Value> RaiseException(const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("raise_exception", arguments, {"message"}, 1));
  ASSIGN_OR_RETURN(const Text message, Printed(bound[0], &context->budget));
  return Error("the template refuses the conversation: ", message.bytes());
}

// One directive of strftime; what is unknown stays as it is.
std::string FormatDirective(std::string_view directive, absl::Time now) {
  constexpr std::string_view kKnown = "YmdbBaAHIMSpjyeFT";
  if (directive == "%%") return "%";
  const bool unpadded = directive.size() == 3;
  const char letter = directive.back();
  if (kKnown.find(letter) == std::string_view::npos) return std::string(directive);
  std::string formatted = absl::FormatTime(std::string{'%', letter}, now, absl::TimeZone());
  if (unpadded && formatted.size() > 1 && formatted[0] == '0') formatted.erase(0, 1);
  return formatted;
}

absl::StatusOr<Value> StrftimeNow(const Arguments& arguments, Context* context) {
  ASSIGN_OR_RETURN(const BoundArguments bound,
                   BoundArguments::Bind("strftime_now", arguments, {"format"}, 1));
  ASSIGN_OR_RETURN(const Text* format, bound.RequiredText(0));
  const std::string_view bytes = format->bytes();
  RETURN_IF_ERROR(context->budget.Allocate(16 * bytes.size()));
  std::string formatted;
  for (size_t at = 0; at < bytes.size();) {
    // %Y, or %-d: without the leading zero.
    const size_t length = bytes[at] != '%' ? 1 : bytes.substr(at + 1).starts_with('-') ? 3 : 2;
    const std::string_view piece = bytes.substr(at, length);
    formatted +=
        piece.size() < 2 || piece.size() < length ? std::string(piece) : FormatDirective(piece, context->now);
    at += piece.size();
  }
  return MakeString(Text(std::move(formatted), format->origin()), &context->budget);
}

}  // namespace

std::shared_ptr<const Callable> FindFunction(std::string_view name) {
  using Table = absl::flat_hash_map<std::string_view, std::shared_ptr<const Callable>>;
  static const Table* const kTable = new Table{
      {"range", std::make_shared<const Callable>(Range)},
      {"namespace", std::make_shared<const Callable>(MakeNamespace)},
      {"dict", std::make_shared<const Callable>(MakeDictionary)},
      {"raise_exception", std::make_shared<const Callable>(RaiseException)},
      {"strftime_now", std::make_shared<const Callable>(StrftimeNow)},
  };
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace baton::jinja
