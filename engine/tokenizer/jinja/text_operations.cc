#include "engine/tokenizer/jinja/text_operations.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/format.h"
#include "engine/tokenizer/jinja/operators.h"

namespace baton::jinja {
namespace {

// Collects the pieces of a text as a list.
class Pieces {
 public:
  Pieces(const Text& text, Budget* budget) : text_(text), budget_(budget) {}

  absl::Status Add(size_t begin, size_t end) {
    ASSIGN_OR_RETURN(Value piece, MakeString(text_.Slice(begin, end), budget_));
    items_.push_back(std::move(piece));
    return absl::OkStatus();
  }
  int64_t count() const { return items_.size(); }
  absl::StatusOr<Value> List() && { return MakeList(std::move(items_), budget_); }
  absl::StatusOr<Value> ReversedList() && {
    std::reverse(items_.begin(), items_.end());
    return std::move(*this).List();
  }

 private:
  const Text& text_;
  Budget* const budget_;
  std::vector<Value> items_;
};

bool IsSpaceAt(std::string_view bytes, size_t offset) { return IsSpace(CodePointAt(bytes, offset)); }

// The first offset at or after `offset` where being a space is `space`, or the end.
size_t NextWhere(bool space, std::string_view bytes, size_t offset) {
  while (offset < bytes.size() && IsSpaceAt(bytes, offset) != space) offset += CodePointBytes(bytes, offset);
  return offset;
}

// The first offset from which all characters up to `offset` have `space`.
size_t PreviousWhile(bool space, std::string_view bytes, size_t offset) {
  while (offset > 0) {
    const size_t previous = PreviousCodePoint(bytes, offset);
    if (IsSpaceAt(bytes, previous) != space) break;
    offset = previous;
  }
  return offset;
}

absl::StatusOr<Value> SplitAtSpaces(const Text& text, int64_t count, Budget* budget) {
  const std::string_view bytes = text.bytes();
  RETURN_IF_ERROR(budget->Scan(bytes.size()));
  Pieces pieces(text, budget);
  size_t begin = NextWhere(false, bytes, 0);
  while (begin < bytes.size()) {
    const bool last = count >= 0 && pieces.count() >= count;
    const size_t end = last ? bytes.size() : NextWhere(true, bytes, begin);
    RETURN_IF_ERROR(pieces.Add(begin, end));
    begin = NextWhere(false, bytes, end);
  }
  return std::move(pieces).List();
}

absl::StatusOr<Value> SplitAtSpacesFromEnd(const Text& text, int64_t count, Budget* budget) {
  const std::string_view bytes = text.bytes();
  RETURN_IF_ERROR(budget->Scan(bytes.size()));
  Pieces pieces(text, budget);
  size_t end = PreviousWhile(true, bytes, bytes.size());
  while (end > 0) {
    const bool last = count >= 0 && pieces.count() >= count;
    const size_t begin = last ? 0 : PreviousWhile(false, bytes, end);
    RETURN_IF_ERROR(pieces.Add(begin, end));
    end = PreviousWhile(true, bytes, begin);
  }
  return std::move(pieces).ReversedList();
}

// The argument that a field of a format pattern names; an empty name is the one after the last such.
absl::StatusOr<Value> FieldValue(std::string_view field, const Arguments& arguments, size_t* next) {
  size_t position = 0;
  const char* const end = field.data() + field.size();
  const auto [stopped, error] = std::from_chars(field.data(), end, position);
  if (field.empty()) {
    position = (*next)++;
  } else if (error != std::errc() || stopped != end) {
    for (const auto& [name, value] : arguments.named) {
      if (name == field) return value;
    }
    return Error("format: the field '", field.substr(0, 40), "' is no name or number of an argument");
  }
  if (position >= arguments.positional.size()) return Error("format: there is no argument ", position);
  return arguments.positional[position];
}

bool BeginsTitleWord(char32_t previous, bool by_spaces) {
  if (!by_spaces) return !IsLetter(previous);
  return IsSpace(previous) || previous == '-' || previous == '(' || previous == '[' || previous == '{' ||
         previous == '<';
}

}  // namespace

Text UpperText(const Text& text) { return text.WithBytes(ToUpper(text.bytes())); }
Text LowerText(const Text& text) { return text.WithBytes(ToLower(text.bytes())); }

Text CapitalizeText(const Text& text) {
  if (text.empty()) return text;
  const size_t first = CodePointBytes(text.bytes(), 0);
  return text.WithBytes(ToUpper(text.bytes().substr(0, first)) + ToLower(text.bytes().substr(first)));
}

Text TitleText(const Text& text, bool by_spaces) {
  std::string titled;
  char32_t previous = ' ';
  for (size_t at = 0; at < text.size(); at += CodePointBytes(text.bytes(), at)) {
    const char32_t current = CodePointAt(text.bytes(), at);
    AppendCodePoint(BeginsTitleWord(previous, by_spaces) ? UpperOf(current) : LowerOf(current), &titled);
    previous = current;
  }
  return text.WithBytes(std::move(titled));
}

absl::StatusOr<Text> ReplaceText(const Text& text, const Text& from, const Text& to, int64_t count,
                                 Budget* budget) {
  Text replaced;
  size_t copied = 0;  // of `text`
  size_t search = 0;
  for (int64_t done = 0; (count < 0 || done < count) && search <= text.size(); ++done) {
    ASSIGN_OR_RETURN(const std::optional<size_t> match, FindText(text.bytes(), from.bytes(), search, budget));
    if (!match) break;
    replaced.Append(text, copied, *match);
    const Origin origin = text.OriginOf(*match, *match + from.size());
    if (origin == Origin::kMessage) {
      replaced.Append(to.bytes(), origin);
    } else {
      replaced.Append(to);
    }
    copied = *match + from.size();
    // An empty `from` is found before each character and at the end.
    search = copied;
    if (from.empty()) search += copied < text.size() ? CodePointBytes(text.bytes(), copied) : 1;
    RETURN_IF_ERROR(budget->Allocate(to.size() + 1));
    if (replaced.size() > kMaxTextBytes) {
      return Error("replace: the result is over the limit of ", kMaxTextBytes, " bytes");
    }
  }
  replaced.Append(text, copied, text.size());
  return replaced;
}

absl::StatusOr<Value> SplitText(const Text& text, const Text* separator, int64_t count, Budget* budget) {
  if (separator == nullptr) return SplitAtSpaces(text, count, budget);
  if (separator->empty()) return Error("split: the separator is empty");
  Pieces pieces(text, budget);
  size_t begin = 0;
  while (count < 0 || pieces.count() < count) {
    ASSIGN_OR_RETURN(const std::optional<size_t> match,
                     FindText(text.bytes(), separator->bytes(), begin, budget));
    if (!match) break;
    RETURN_IF_ERROR(pieces.Add(begin, *match));
    begin = *match + separator->size();
  }
  RETURN_IF_ERROR(pieces.Add(begin, text.size()));
  return std::move(pieces).List();
}

absl::StatusOr<Value> SplitTextFromEnd(const Text& text, const Text* separator, int64_t count,
                                       Budget* budget) {
  if (separator == nullptr) return SplitAtSpacesFromEnd(text, count, budget);
  if (separator->empty()) return Error("rsplit: the separator is empty");
  Pieces pieces(text, budget);
  // A search from the end compares at each place: as many steps as bytes are compared at worst.
  RETURN_IF_ERROR(budget->Scan(text.size() * separator->size()));
  size_t end = text.size();
  while (end >= separator->size() && (count < 0 || pieces.count() < count)) {
    const size_t match = text.bytes().substr(0, end).rfind(separator->bytes());
    if (match == std::string_view::npos) break;
    RETURN_IF_ERROR(pieces.Add(match + separator->size(), end));
    end = match;
  }
  RETURN_IF_ERROR(pieces.Add(0, end));
  return std::move(pieces).ReversedList();
}

absl::StatusOr<Value> SplitLines(const Text& text, bool keep_ends, Budget* budget) {
  const std::string_view bytes = text.bytes();
  RETURN_IF_ERROR(budget->Scan(bytes.size()));
  Pieces pieces(text, budget);
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find_first_of("\n\r", begin), bytes.size());
    size_t next = std::min(end + 1, bytes.size());
    if (bytes.substr(end, 2) == "\r\n") ++next;
    RETURN_IF_ERROR(pieces.Add(begin, keep_ends ? next : end));
    begin = next;
  }
  return std::move(pieces).List();
}

absl::StatusOr<Value> FormatText(const Text& pattern, const Arguments& arguments, Budget* budget) {
  const std::string_view bytes = pattern.bytes();
  RETURN_IF_ERROR(budget->Scan(bytes.size()));
  Text formatted;
  size_t next = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    formatted.Append(pattern, at, brace);
    if (brace == bytes.size()) break;
    if (bytes.substr(brace + 1).starts_with(bytes[brace])) {  // {{ and }} stand for one
      formatted.Append(pattern, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string_view::npos)
      return Error("format: a single brace in the pattern");
    ASSIGN_OR_RETURN(const Value value,
                     FieldValue(bytes.substr(brace + 1, close - brace - 1), arguments, &next));
    RETURN_IF_ERROR(AppendPrinted(value, &formatted, budget));
    at = close + 1;
  }
  return MakeString(std::move(formatted), budget);
}

absl::StatusOr<Value> JoinValues(const std::vector<Value>& items, const Text& separator, Budget* budget) {
  Text joined;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      RETURN_IF_ERROR(budget->Allocate(separator.size()));
      joined.Append(separator);
    }
    RETURN_IF_ERROR(AppendPrinted(items[i], &joined, budget));
  }
  return MakeString(std::move(joined), budget);
}

}  // namespace baton::jinja
