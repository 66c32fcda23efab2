#ifndef BATON_ENGINE_TOKEN_H_
#define BATON_ENGINE_TOKEN_H_

#include <cstdint>

namespace baton {

// A token of the model's vocabulary: an index in [0, vocab_size).
using TokenId = uint32_t;

}  // namespace baton

#endif  // BATON_ENGINE_TOKEN_H_
