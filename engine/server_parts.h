#ifndef BATON_ENGINE_SERVER_PARTS_H_
#define BATON_ENGINE_SERVER_PARTS_H_

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/drain_state.h"
#include "common/metrics.h"
#include "common/random_source.h"
#include "engine/engine.h"

namespace baton {

// What outlives the server of a worker, whatever its role: a process's, or those of several in a test's.
// `random` is safe to call from any thread.
struct ServerParts {
  Engine* engine = nullptr;
  Device* device = nullptr;
  const Clock* clock = nullptr;
  RandomSource* random = nullptr;
  Metrics* metrics = nullptr;
  DrainState* drain = nullptr;
  absl::Duration stall_timeout = absl::Seconds(2);  // a loop that stands still for longer is not healthy
};

}  // namespace baton

#endif  // BATON_ENGINE_SERVER_PARTS_H_
