#ifndef BATON_DECODE_SERVICE_DECODE_SCHEDULER_H_
#define BATON_DECODE_SERVICE_DECODE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/decode.pb.h"
#include "common/random_source.h"
#include "common/transfer_id.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "engine/job_table.h"
#include "kv_transfer/landing_table.h"

namespace baton {

struct DecodeSchedulerOptions {
  uint32_t token_budget = 512;     // rows of one step, or as many as there are sequences
  uint32_t chunk_tokens = 256;     // rows of one sequence in one step
  uint32_t min_chunk_tokens = 32;  // the step-time bound never cuts the budget below this
  uint32_t max_running = 64;       // sequences
  // A sequence is taken when it and those before it have blocks for this many more tokens each, and grows
  // block by block from there. 0: for as many as it may ever have, so that none is ever preempted.
  uint32_t reserve_tokens = 0;
  absl::Duration step_target = absl::Milliseconds(200);
  absl::Duration progress_interval = absl::Milliseconds(250);  // and a step at most: heard from every 500 ms
  std::string instance_id;                                     // of this worker
  std::string advertise;  // the address that prefill dials; may be set before the first handoff
  std::vector<std::string> transports;
};

// The sequences of a decode worker: whose KV is awaited, which are in the running batch. A state machine
// without thread, socket or clock: it takes events and returns actions. Belongs to one executor, the worker's
// loop.
//
//   router          DecodeScheduler            transfer              engine
//     | OnRequest ---> LANDING --------------> StartLanding
//     | <--- Reserved
//     |                  <--- OnLanded ------- commit accepted
//     | <--- Landed, Tokens{0}
//     |                RUNNING  StartStep -------------------------> Execute
//     | <--- Tokens{i}   <----- OnStepDone ------------------------- each step
//     |                  |  ^ no block is left for one that ranks higher / room again: computes what it had
//     |                  v  |
//     |                PREEMPTED
//     | <--- DecodeDone, close(OK)
//
// A request that asks for LocalPrefill starts in RUNNING and computes its prompt in chunks beside the others'
// decode rows. A leg that closes, a deadline or a failed landing ends its job in any state; a job that is
// part of a running step ends with that step. Every OnRequest is answered by exactly one CloseLeg, unless
// OnLegClosed came first.
//
// Sequences rank by priority, then by age. When blocks run out, those that rank lowest are preempted until
// the others can grow, so the first always goes on; the lowest itself just waits. A preempted one drops its
// KV. It comes back, before any new request is taken, when it and those before it have room for twice as many
// more tokens as at the time before: so they preempt it no more than log2(longest answer / reserve_tokens) +
// 1 times; only a later one of higher priority may do so again. Its prompt is then prefilled again and its
// tokens are replayed, never sampled again: its stream sees a pause.
class DecodeScheduler {
 public:
  using Request = v1::DecodeRequest;
  using Event = v1::DecodeEvent;
  using SendEvent = SendToLeg<Event>;
  using CloseLeg = baton::CloseLeg;
  // A place for the KV to land; the claims come back with OnLanded.
  struct StartLanding {
    LandingSpec spec;
  };
  struct DropLanding {
    TransferId transfer_id;
  };
  // For logs and metrics: a sequence lost its blocks, with the KV of so many tokens; it computes them again.
  struct Preempted {
    std::string request_id;
    uint32_t tokens;
    uint32_t nth;  // of this sequence, from 1
  };
  struct Resumed {
    uint32_t tokens;
  };
  using Action = std::variant<SendEvent, CloseLeg, StartLanding, DropLanding, Preempted, Resumed>;
  using Actions = std::vector<Action>;

  // `info`, `pools` and `random` outlive the scheduler; `random` mints tickets.
  DecodeScheduler(const DecodeSchedulerOptions& options, const EngineInfo* info, KvPools* pools,
                  RandomSource* random);
  ~DecodeScheduler();

  void set_advertise(std::string advertise) { options_.advertise = std::move(advertise); }

  // `received`: when the worker read the request, which may lie before `now` while the loop was in a step.
  Actions OnRequest(LegId leg, const v1::DecodeRequest& request, absl::Time received, absl::Time deadline,
                    absl::Time now);
  Actions OnLegClosed(LegId leg);
  // Ends this request's jobs with ABORTED. No actions when there is none.
  Actions OnAbort(const std::string& request_id);
  // Ends every job with UNAVAILABLE, reason DRAINING: the router moves them.
  Actions OnHandBack(absl::Time now);
  // Every wanted byte is in `kv` and visible, and the commit was accepted. A landing that nobody waits for
  // any more just gives its blocks back.
  Actions OnLanded(landing::Landed landed, absl::Time now);
  Actions OnLandingFailed(const landing::LandingFailed& failed);

  // What a step took before the first request: bounds the first real one.
  void OnWarmUp(uint32_t rows, absl::Duration took) { jobs_.OnStepTime(rows, took); }

  // Begins the next step when there is one to take and none runs; its plan is valid until OnStepDone.
  std::optional<StepPlan> StartStep(absl::Time now, Actions& actions);
  Actions OnStepDone(const StepResult& result, absl::Time now);

  // Deadlines and progress reports: call OnTimer at next_timer() or later.
  absl::Time next_timer() const;
  Actions OnTimer(absl::Time now);

  // "landing", "prefilling", "decoding", "preempted", as in metrics; empty for a leg that has ended.
  std::string_view phase(LegId leg) const;
  WorkerLoad load() const;
  uint32_t open_legs() const { return static_cast<uint32_t>(jobs_.size()); }
  absl::Status CheckInvariants() const;

 private:
  enum class State { kLanding, kRunning, kPreempted };
  struct DecodeJob;

  absl::StatusOr<std::unique_ptr<DecodeJob>> MakeJob(LegId leg, const v1::DecodeRequest& request,
                                                     absl::Time deadline, absl::Time now);
  // Those that go first before the others.
  std::vector<DecodeJob*> Ranked(State state) const;
  static bool RanksBefore(const DecodeJob& a, const DecodeJob& b);
  uint32_t ReserveTokens(const DecodeJob& job) const;
  absl::StatusOr<SequenceKv> Reserve(DecodeJob& job);
  void Resume(Actions& actions);
  std::vector<DecodeJob*> Grow(absl::Time now, Actions& actions);
  void Preempt(DecodeJob& job, Actions& actions);
  void RefuseLanding(absl::Time now, Actions& actions);
  v1::Landing BeginLanding(DecodeJob& job, SequenceKv kv, Actions& actions);
  void SendTokens(DecodeJob& job, v1::LegToken token, absl::Time now, Actions& actions);
  void OnRowsDone(DecodeJob& job, const SequenceResult& result, absl::Time now, Actions& actions);
  void EndIfFinished(DecodeJob& job, Actions& actions);
  // Gives back what the job holds and forgets it, at once or with the step that it is part of.
  void End(DecodeJob& job, Actions& actions);
  void Close(DecodeJob& job, absl::Status status, Actions& actions);

  DecodeSchedulerOptions options_;
  const EngineInfo* const info_;
  KvPools* const pools_;
  RandomSource* const random_;
  JobTable<DecodeJob> jobs_;
  absl::Time next_refusal_ = absl::InfinitePast();  // of a landing, while the blocks of the latest come back
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_SCHEDULER_H_
