#ifndef BATON_ENGINE_TOKENIZER_JINJA_FORMAT_H_
#define BATON_ENGINE_TOKENIZER_JINJA_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// Appends what {{ value }} prints: strings as they are, nothing for none and undefined, lists and dicts as
// JSON. INVALID_ARGUMENT for what has no printed form (functions, loops) and beyond the limits.
absl::Status AppendPrinted(const Value& value, Text* out, Budget* budget);
// The same as a text of its own.
absl::StatusOr<Text> Printed(const Value& value, Budget* budget);

struct JsonOptions {
  int64_t indent = 0;  // spaces per level; 0 writes one line
  bool ensure_ascii = false;
  bool sort_keys = false;
  Text item_separator = Text(", ", Origin::kTemplate);
  Text key_separator = Text(": ", Origin::kTemplate);
  // What stands for an undefined value inside a list or dict.
  std::string undefined = "null";
};

absl::StatusOr<Text> ToJson(const Value& value, const JsonOptions& options, Budget* budget);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_FORMAT_H_
