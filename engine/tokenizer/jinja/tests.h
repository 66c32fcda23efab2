#ifndef BATON_ENGINE_TOKENIZER_JINJA_TESTS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_TESTS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/tokenizer/jinja/arguments.h"
#include "engine/tokenizer/jinja/context.h"
#include "engine/tokenizer/jinja/value.h"

namespace baton::jinja {

// Jinja's tests: `input is name(arguments)`. INVALID_ARGUMENT for an unknown test and for arguments that it
// does not take.
absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& input, const Arguments& arguments,
                               Context* context);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_TESTS_H_
