#ifndef BATON_ENGINE_TOKENIZER_JINJA_ERROR_H_
#define BATON_ENGINE_TOKENIZER_JINJA_ERROR_H_

#include "absl/status/status.h"
#include "common/str_cat.h"

namespace baton::jinja {

// The INVALID_ARGUMENT status whose text is the parts one after the other: whatever is wrong with a template
// or with a rendering of it has this code.
template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_ERROR_H_
