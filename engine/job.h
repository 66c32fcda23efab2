#ifndef BATON_ENGINE_JOB_H_
#define BATON_ENGINE_JOB_H_

#include <cstdint>

namespace baton {

// One open leg on a worker, minted by the shell that owns the stream, never reused within a process. Rising,
// so that the order of ids is the order of arrival.
using LegId = uint64_t;

// How loaded a worker is, as GetLoad reports it.
struct WorkerLoad {
  uint32_t running = 0;
  uint32_t waiting = 0;
  uint32_t waiting_tokens = 0;  // prompt tokens not yet computed
  uint32_t batch_size = 0;      // sequences in the latest step
  uint64_t steps = 0;           // since the start
};

}  // namespace baton

#endif  // BATON_ENGINE_JOB_H_
