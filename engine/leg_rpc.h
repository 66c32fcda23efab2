#ifndef BATON_ENGINE_LEG_RPC_H_
#define BATON_ENGINE_LEG_RPC_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/call_deadline.h"
#include "common/clock.h"
#include "common/drain_state.h"
#include "common/server_stream.h"
#include "engine/job.h"
#include "grpcpp/server_context.h"

namespace baton {

// Of a leg whose caller names no deadline, or a later one: nothing is held for ever.
inline constexpr absl::Duration kLongestLeg = absl::Hours(1);
// Events that may wait for a leg's reader. The router reads as fast as it can, so one that leaves these is
// wedged.
inline constexpr size_t kMaxQueuedLegEvents = 4096;

// Turns a call of a leg's RPC into events for `worker` (a PrefillWorker or DecodeWorker) and its events into
// messages. While the process refuses work the call ends with UNAVAILABLE, reason DRAINING. Everything passed
// in outlives the call.
template <typename Event, typename Request, typename Worker>
grpc::ServerWriteReactor<Event>* StartLeg(const grpc::CallbackServerContext& context, const Request& request,
                                          Worker* worker, DrainState* drain, const Clock* clock) {
  const absl::Time received = clock->Now();
  absl::StatusOr<DrainState::Work> admitted = drain->Admit();
  if (!admitted.ok()) {
    const auto stream = ServerStream<Event>::Create({});
    stream->Finish(admitted.status());
    return stream->reactor();
  }
  const LegId leg = worker->NewLeg();
  const auto work = std::make_shared<DrainState::Work>(*std::move(admitted));
  const auto stream = ServerStream<Event>::Create({.max_queued = kMaxQueuedLegEvents,
                                                   .on_cancel = [worker, leg] { worker->OnLegClosed(leg); },
                                                   .on_done = [work] { *work = DrainState::Work(); }});
  worker->OnRequest(leg, stream, request, received, CallDeadline(context, *clock, kLongestLeg));
  return stream->reactor();
}

}  // namespace baton

#endif  // BATON_ENGINE_LEG_RPC_H_
