#ifndef BATON_ENGINE_TOKENIZER_JINJA_TEXT_OPERATIONS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_TEXT_OPERATIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/arguments.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// What the string methods and the filters share. All keep the origin of each character.

Text UpperText(const Text& text);
Text LowerText(const Text& text);
// First letter upper, all others lower case.
Text CapitalizeText(const Text& text);
// Each word so. A word begins after anything that is no letter, or, for `by_spaces`, after white space and
// -([{< only.
Text TitleText(const Text& text, bool by_spaces);

// At most `count` replacements, all when negative. What replaces message text counts as message text, so that
// a user cannot have the template write a control token for them.
absl::StatusOr<Text> ReplaceText(const Text& text, const Text& from, const Text& to, int64_t count,
                                 Budget* budget);

// As str.split and str.rsplit: at white space when `separator` is null; at most `count` cuts unless negative.
absl::StatusOr<Value> SplitText(const Text& text, const Text* separator, int64_t count, Budget* budget);
absl::StatusOr<Value> SplitTextFromEnd(const Text& text, const Text* separator, int64_t count,
                                       Budget* budget);
absl::StatusOr<Value> SplitLines(const Text& text, bool keep_ends, Budget* budget);

// As str.format, with {}, {0} and {name} only.
absl::StatusOr<Value> FormatText(const Text& pattern, const Arguments& arguments, Budget* budget);

absl::StatusOr<Value> JoinValues(const std::vector<Value>& items, const Text& separator, Budget* budget);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_TEXT_OPERATIONS_H_
