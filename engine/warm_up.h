#ifndef BATON_ENGINE_WARM_UP_H_
#define BATON_ENGINE_WARM_UP_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/clock.h"
#include "engine/engine.h"

namespace baton {

// Runs one step of `rows` prompt tokens, or as many as a step takes, for nobody: it brings the weights into
// memory, and what it takes tells how large the first real step may be. The blocks that it uses are free
// again when it returns. On the thread that executes.
struct WarmUpStep {
  uint32_t rows = 0;  // 0: there was no room for it
  absl::Duration took;
};
WarmUpStep WarmUp(Engine* engine, uint32_t rows, const Clock& clock);

}  // namespace baton

#endif  // BATON_ENGINE_WARM_UP_H_
