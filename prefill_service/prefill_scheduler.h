#ifndef BATON_PREFILL_SERVICE_PREFILL_SCHEDULER_H_
#define BATON_PREFILL_SERVICE_PREFILL_SCHEDULER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/kv_transfer.pb.h"
#include "baton/v1/prefill.pb.h"
#include "common/transfer_id.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "engine/job_table.h"
#include "kv_transfer/handoff.h"
#include "kv_transfer/pinned_kv.h"

namespace baton {

struct PrefillSchedulerOptions {
  uint32_t token_budget = 512;     // rows of one step
  uint32_t chunk_tokens = 512;     // rows of one prompt in one step
  uint32_t min_chunk_tokens = 32;  // the step-time bound never cuts the budget below this
  uint32_t max_running = 32;       // prompts that hold blocks
  uint32_t max_waiting = 64;       // prompts that wait for blocks; the router keeps the real queue
  absl::Duration step_target = absl::Milliseconds(200);
  absl::Duration progress_interval = absl::Milliseconds(250);  // and a step at most: heard from every 500 ms
};

// The prompts of a prefill worker: which wait, which compute, whose KV is on its way. A state machine without
// thread, socket or clock: it takes events and returns actions. Belongs to one executor, the worker's loop.
//
//   router        PrefillScheduler           engine            transfer
//     | OnRequest ----> QUEUED
//     |                 COMPUTING (blocks reserved) -------------> StartHandoff
//     |                   StartStep ---------> Execute
//     |                   <- OnLayersDone ----- layer range ------> HandoffComputed
//     |                   <- OnStepDone ------- last chunk
//     | <--- FirstToken - PUSHING --------------------------------> HandoffPromptDone
//     | <--- PrefillDone, close(OK)  <------------ OnHandoffFinished
//
// A leg that closes, a deadline or a failed handoff ends its job in any state; a job that is part of a
// running step ends with that step. Every OnRequest is answered by exactly one CloseLeg, unless OnLegClosed
// came first.
class PrefillScheduler {
 public:
  using Request = v1::PrefillRequest;
  using Event = v1::PrefillEvent;
  using SendEvent = SendToLeg<Event>;
  using CloseLeg = baton::CloseLeg;
  struct StartHandoff {
    HandoffSpec spec;
    PinnedKv source;
  };
  // KV of these tokens of the prompt is in the pools for these layers.
  struct HandoffComputed {
    TransferId transfer_id;
    LayerRange layers;
    TokenRange tokens;
  };
  struct HandoffPromptDone {
    TransferId transfer_id;
    v1::LandCommit commit;
  };
  struct CancelHandoff {
    TransferId transfer_id;
  };
  using Action =
      std::variant<SendEvent, CloseLeg, StartHandoff, HandoffComputed, HandoffPromptDone, CancelHandoff>;
  using Actions = std::vector<Action>;

  // `info` and `pools` outlive the scheduler.
  PrefillScheduler(const PrefillSchedulerOptions& options, const EngineInfo* info, KvPools* pools);
  ~PrefillScheduler();

  // `received`: when the worker read the request, which may lie before `now` while the loop was in a step.
  Actions OnRequest(LegId leg, const v1::PrefillRequest& request, absl::Time received, absl::Time deadline,
                    absl::Time now);
  Actions OnLegClosed(LegId leg);
  // Ends this request's jobs with ABORTED. No actions when there is none.
  Actions OnAbort(const std::string& request_id);
  // Ends jobs with UNAVAILABLE, reason DRAINING: the router moves them. Those that are only pushing have a
  // little time more.
  Actions OnHandBack(absl::Time now);
  Actions OnHandoffFinished(const HandoffResult& result);

  // What a step took before the first request: bounds the first real one.
  void OnWarmUp(uint32_t rows, absl::Duration took) { jobs_.OnStepTime(rows, took); }

  // Begins the next step when there is one to take and none runs; its plan is valid until OnStepDone.
  std::optional<StepPlan> StartStep(absl::Time now, Actions& actions);
  Actions OnLayersDone(LayerRange layers);
  Actions OnStepDone(const StepResult& result, absl::Time now);

  // Deadlines and progress reports: call OnTimer at next_timer() or later.
  absl::Time next_timer() const;
  Actions OnTimer(absl::Time now);

  // "queued", "computing", "pushing", as in metrics; empty for a leg that has ended.
  std::string_view phase(LegId leg) const;
  WorkerLoad load() const;
  uint32_t open_legs() const { return static_cast<uint32_t>(jobs_.size()); }
  // Every job's state agrees with what it holds. For tests, after every event.
  absl::Status CheckInvariants() const;

 private:
  enum class State { kQueued, kComputing, kPushing };
  struct PrefillJob;

  static Actions Refuse(LegId leg, absl::Status status);
  std::vector<PrefillJob*> InState(State state) const;
  void Admit(absl::Time now, Actions& actions);
  void FinishPrompt(PrefillJob& job, const SequenceResult& result, absl::Time now, Actions& actions);
  // Gives back what the job holds and forgets it, at once or with the step that it is part of.
  void End(PrefillJob& job, Actions& actions);
  void Close(PrefillJob& job, absl::Status status, Actions& actions);

  const PrefillSchedulerOptions options_;
  const EngineInfo* const info_;
  KvPools* const pools_;
  JobTable<PrefillJob> jobs_;
  absl::Time hand_back_at_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_PREFILL_SERVICE_PREFILL_SCHEDULER_H_
