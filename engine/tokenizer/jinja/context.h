#ifndef BATON_ENGINE_TOKENIZER_JINJA_CONTEXT_H_
#define BATON_ENGINE_TOKENIZER_JINJA_CONTEXT_H_

#include "absl/time/time.h"
#include "engine/tokenizer/jinja/limits.h"

namespace baton::jinja {

// What one rendering shares with the operations it calls. Used by the rendering's thread only.
struct Context {
  Budget budget;
  absl::Time now;  // for strftime_now
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_CONTEXT_H_
