#ifndef BATON_ENGINE_TOKENIZER_JINJA_LEXER_H_
#define BATON_ENGINE_TOKENIZER_JINJA_LEXER_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/token.h"

namespace baton::jinja {

// Cuts a template into tokens, the last one kEnd. Comments are gone; white space around tags is gone as
// trim_blocks, lstrip_blocks and the marks `-` and `+` say; what {% raw %} encloses is data. `source` is
// well-formed UTF-8 with "\n" as the only line end, and must outlive the tokens. INVALID_ARGUMENT with the
// line for anything that is no token.
absl::StatusOr<std::vector<Token>> Lex(std::string_view source);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_LEXER_H_
