#ifndef BATON_DECODE_SERVICE_DECODE_SCHEDULER_H_
#define BATON_DECODE_SERVICE_DECODE_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
#include "engine/planner.h"
#include "engine/sequence.h"
#include "kv_transfer/landing_table.h"

namespace baton {

struct DecodeSchedulerOptions {
  uint32_t token_budget = 512;     // rows of one step, or as many as there are sequences
  uint32_t chunk_tokens = 256;     // rows of one sequence in one step
  uint32_t min_chunk_tokens = 32;  // the step-time bound never cuts the budget below this
  uint32_t max_running = 64;       // sequences that hold blocks
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
//     | <--- DecodeDone, close(OK)
//
// A request that asks for LocalPrefill starts in RUNNING and computes its prompt in chunks beside the others'
// decode rows. A leg that closes, a deadline or a failed landing ends its job in any state; a job that is
// part of a running step ends with that step. Every OnRequest is answered by exactly one CloseLeg, unless
// OnLegClosed came first.
class DecodeScheduler {
 public:
  struct SendEvent {
    LegId leg;
    v1::DecodeEvent event;
  };
  struct CloseLeg {
    LegId leg;
    absl::Status status;
  };
  // A place for the KV to land; the claims come back with OnLanded.
  struct StartLanding {
    LandingSpec spec;
  };
  struct DropLanding {
    TransferId transfer_id;
  };
  using Action = std::variant<SendEvent, CloseLeg, StartLanding, DropLanding>;
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
  // Every wanted byte is in `kv` and visible, and the commit was accepted. A landing that nobody waits for
  // any more just gives its blocks back.
  Actions OnLanded(const TransferId& transfer_id, SequenceKv kv,
                   const std::optional<v1::LegToken>& first_token, uint64_t bytes,
                   const std::string& transport, absl::Time now);
  Actions OnLandingFailed(const TransferId& transfer_id, const absl::Status& status);

  // What a step took before the first request: bounds the first real one.
  void OnWarmUp(uint32_t rows, absl::Duration took) { budget_.OnStep(rows, took); }

  // Begins the next step when there is one to take and none runs; its plan is valid until OnStepDone.
  std::optional<StepPlan> StartStep(absl::Time now);
  Actions OnStepDone(const StepResult& result, absl::Time now);

  // Deadlines and progress reports: call OnTimer at next_timer() or later.
  absl::Time next_timer() const;
  Actions OnTimer(absl::Time now);

  // "landing", "prefilling", "decoding", as in metrics; empty for a leg that has ended.
  std::string_view phase(LegId leg) const;
  WorkerLoad load() const;
  uint32_t open_legs() const { return static_cast<uint32_t>(jobs_.size()); }
  absl::Status CheckInvariants() const;

 private:
  enum class State { kLanding, kRunning };
  struct Job;

  Job* FindByTransfer(const TransferId& id);
  absl::StatusOr<std::unique_ptr<Job>> MakeJob(LegId leg, const v1::DecodeRequest& request,
                                               absl::Time deadline, absl::Time now);
  void BeginLanding(Job& job, v1::Landing& landing, Actions& actions);
  void SendTokens(Job& job, v1::LegToken token, absl::Time now, Actions& actions);
  void OnRowsDone(Job& job, const SequenceResult& result, absl::Time now, Actions& actions);
  void EndIfFinished(Job& job, Actions& actions);
  // Gives back what the job holds and forgets it, at once or with the step that it is part of.
  void End(Job& job, Actions& actions);
  void Close(Job& job, absl::Status status, Actions& actions);

  DecodeSchedulerOptions options_;
  const EngineInfo* const info_;
  KvPools* const pools_;
  RandomSource* const random_;
  ChunkBudget budget_;
  std::map<LegId, std::unique_ptr<Job>> jobs_;  // in the order of arrival
  std::unordered_map<TransferId, LegId> by_transfer_;
  std::vector<Job*> step_;  // in the order of the running plan; empty: no step runs
  absl::Time step_started_;
  uint32_t batch_size_ = 0;
  uint64_t steps_ = 0;
  absl::Time next_progress_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_SCHEDULER_H_
