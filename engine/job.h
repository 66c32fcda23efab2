#ifndef BATON_ENGINE_JOB_H_
#define BATON_ENGINE_JOB_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/transfer_id.h"
#include "engine/sequence.h"

namespace baton {

// One open leg on a worker, minted by the shell that owns the stream, never reused within a process. Rising,
// so that the order of ids is the order of arrival.
using LegId = uint64_t;

// What every job of a scheduler has, whatever the role: one leg's sequence, from its request to its end.
// Owned by a JobTable.
struct Job {
  Job(LegId leg, const TransferId& transfer_id, std::string request_id, absl::Time deadline,
      SequenceSpec spec, uint32_t vocab_size)
      : leg(leg),
        transfer_id(transfer_id),
        request_id(std::move(request_id)),
        deadline(deadline),
        sequence(std::move(spec), vocab_size) {}

  const LegId leg;
  const TransferId transfer_id;
  const std::string request_id;
  const absl::Time deadline;
  Sequence sequence;
  bool may_sample = true;
  uint32_t step_rows = 0;  // in the running step; 0: not part of it
  bool ended = false;      // waits only for the running step
};

// Actions that both schedulers return: what goes to a leg's reader, and how the leg ends.
template <typename Event>
struct SendToLeg {
  LegId leg;
  Event event;
};
struct CloseLeg {
  LegId leg;
  absl::Status status;
  std::string_view finish;  // of an answer, for the metrics: "stop" or "length"
};

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
