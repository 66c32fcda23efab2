#ifndef BATON_ENGINE_TOKENIZER_JINJA_PARSER_H_
#define BATON_ENGINE_TOKENIZER_JINJA_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/ast.h"

namespace baton::jinja {

// Parses a whole template. INVALID_ARGUMENT with line and reason for what is too large, nests too deep, is no
// Jinja, or is Jinja that no chat template needs (include, extends, import, block).
absl::StatusOr<Block> Parse(std::string_view source);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_PARSER_H_
