#ifndef BATON_ENGINE_TOKENIZER_JINJA_FUNCTIONS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_FUNCTIONS_H_

#include <memory>
#include <string_view>

#include "engine/tokenizer/jinja/scope.h"

namespace baton::jinja {

// The global functions: range, namespace, dict, raise_exception, strftime_now. Null for any other name.
// strftime_now gives the time in UTC, so that a rendering does not depend on the machine.
std::shared_ptr<const Callable> FindFunction(std::string_view name);

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_FUNCTIONS_H_
