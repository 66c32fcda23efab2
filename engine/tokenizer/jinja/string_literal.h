#ifndef BATON_ENGINE_TOKENIZER_JINJA_STRING_LITERAL_H_
#define BATON_ENGINE_TOKENIZER_JINJA_STRING_LITERAL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton::jinja {

// The string that `body`, the source between the quotes, stands for: the escapes are Python's, without
// \N{...}. INVALID_ARGUMENT for a bad escape and for half of a surrogate pair.
absl::StatusOr<std::string> DecodeStringLiteral(std::string_view body);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_STRING_LITERAL_H_
