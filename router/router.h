#ifndef BATON_ROUTER_ROUTER_H_
#define BATON_ROUTER_ROUTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/random_source.h"
#include "engine/tokenizer/tokenizer.h"
#include "router/admission_queue.h"
#include "router/call_spec.h"
#include "router/generate_call.h"
#include "router/pair_picker.h"
#include "router/retry_budget.h"
#include "router/router_actions.h"
#include "router/worker_registry.h"

namespace baton {

struct RouterOptions {
  AdmissionOptions admission;
  // A call that could not be placed for longer keeps the worker that is likely to have room first for itself.
  absl::Duration overtake_limit = absl::Milliseconds(500);
  absl::Duration dispatch_interval =
      absl::Milliseconds(5);  // how often a waiting queue is looked at without a cause
  uint32_t max_passed = 64;   // calls that cannot be placed, looked at in one go
  absl::Duration retry_pause = absl::Milliseconds(100);  // before the retry budget is asked again
  RetryBudgetOptions retries;
  PickerOptions picker;
  GenerateCallOptions call;
};

// All calls of a router, the queue in which they wait for a pair, and the workers. A state machine without
// thread, socket or clock: it takes events and returns actions. Belongs to one executor.
//
// AdmissionQueue says whose turn it is. A call is given a pair as soon as its turn comes and prefill could
// start within a short bound; one that cannot be placed yet is overtaken by later ones that can. Once it has
// waited for overtake_limit, one worker is kept for it, so that it waits for room there and for nothing else,
// and the others go on.
class Router {
 public:
  // `tokenizer` and `random` outlive the router. `model_hash`: see WorkerRegistry.
  Router(const RouterOptions& options, std::string model_hash, const Tokenizer* tokenizer,
         RandomSource* random);
  ~Router();

  // Answered by exactly one EndCall, which is among the returned actions when the call is refused:
  // ALREADY_EXISTS while its request_id is in flight, RESOURCE_EXHAUSTED when AdmissionQueue says so,
  // UNAVAILABLE while draining.
  RouterActions OnCall(CallId id, CallSpec spec, absl::Time now);
  RouterActions OnClientGone(CallId id, absl::Time now);
  // The stream was cut because its client does not read.
  RouterActions OnSlowReader(CallId id, absl::Time now);
  // False in `found` when no call of this id is in flight.
  RouterActions OnAbort(const std::string& request_id, absl::Time now, bool& found);

  RouterActions OnPrefillEvent(const LegKey& key, const v1::PrefillEvent& event, absl::Time now);
  RouterActions OnDecodeEvent(const LegKey& key, const v1::DecodeEvent& event, absl::Time now);
  RouterActions OnLegClosed(const LegKey& key, const absl::Status& status, absl::Time now);

  // The workers changed: call after a change through workers().
  RouterActions OnWorkersChanged(absl::Time now);
  WorkerRegistry& workers() { return workers_; }
  const WorkerRegistry& workers() const { return workers_; }

  // From now on OnCall refuses; what runs goes on.
  void Drain() { draining_ = true; }

  absl::Time next_timer() const;
  RouterActions OnTimer(absl::Time now);

  uint32_t calls() const { return static_cast<uint32_t>(calls_.size()); }
  uint32_t queued() const { return static_cast<uint32_t>(queue_.size()); }
  uint64_t waiting_tokens() const { return queue_.waiting_tokens(); }
  absl::Status CheckInvariants() const;

 private:
  GenerateCall* Find(CallId id);
  // After any event: places what can be placed, forgets what has ended, keeps the timers.
  void Settle(GenerateCall& call, RouterActions& actions);
  void Dispatch(absl::Time now, RouterActions& actions);
  // Gives the call a pair if it can be placed now; false when it was passed over.
  bool Place(GenerateCall& call, const std::vector<WorkerSnapshot>& workers, absl::Time now,
             RouterActions& actions);
  RouterActions EndOne(CallId id, const absl::Status& status, absl::Time now);

  const RouterOptions options_;
  const Tokenizer* const tokenizer_;
  RandomSource* const random_;
  WorkerRegistry workers_;
  std::unordered_map<CallId, std::unique_ptr<GenerateCall>> calls_;
  std::unordered_map<std::string, CallId> by_request_id_;
  AdmissionQueue queue_;
  RetryBudget retries_;
  std::set<std::string> fenced_;  // within Dispatch: workers that are kept for calls which wait for room
  uint64_t replacements_ = 0;     // of workers, as the calls have been told
  std::set<std::pair<absl::Time, CallId>> timers_;
  std::unordered_map<CallId, absl::Time> timer_of_;
  absl::Time next_dispatch_ = absl::InfiniteFuture();
  bool draining_ = false;
};

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_H_
