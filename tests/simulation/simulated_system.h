#ifndef BATON_TESTS_SIMULATION_SIMULATED_SYSTEM_H_
#define BATON_TESTS_SIMULATION_SIMULATED_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "router/router.h"
#include "tests/simulation/sim_nodes.h"
#include "tests/simulation/sim_world.h"
#include "tests/support/byte_tokenizer.h"

namespace baton {

// The whole system in one thread under simulated time: the real router, prefill and decode machines, the real
// senders and landing tables, real KV pools, and an engine whose answers depend on every byte of KV. Links
// and steps take the time that the delays say. A run is a function of its options.
class SimulatedSystem {
 public:
  struct Options {
    uint64_t seed = 1;
    uint32_t prefill_workers = 2;
    uint32_t decode_workers = 2;
    SimDelays delays;
    ScriptedEngine::Options prefill_engine;
    ScriptedEngine::Options decode_engine;
    PrefillSchedulerOptions prefill = {.token_budget = 64, .chunk_tokens = 32, .min_chunk_tokens = 8};
    DecodeSchedulerOptions decode = {.token_budget = 64, .chunk_tokens = 32, .min_chunk_tokens = 8};
    RouterOptions router;
    absl::Duration probe_interval = absl::Milliseconds(500);
    uint32_t check_every = 64;  // events between two checks of every invariant
  };

  // What a client saw.
  struct Answer {
    bool ended = false;
    absl::Status status;
    absl::Time sent;
    absl::Time first_token;
    absl::Time ended_at;
    std::vector<uint32_t> indexes;
    std::vector<TokenId> tokens;
    std::string text;
    v1::PromptInfo prompt;
    v1::Finish finish;
    v1::Usage usage;
    v1::Timings timings;
    std::vector<v1::PositionLogprobs> logprobs;
  };

  explicit SimulatedSystem(const Options& options);
  ~SimulatedSystem();

  // A client's call at `when`; `spec.prompt`, limits and stops are the caller's, the rest is filled in.
  CallId Submit(absl::Time when, CallSpec spec);
  void CancelAt(absl::Time when, CallId call);
  void KillAt(absl::Time when, const std::string& worker);
  // A new process at the same address, with empty pools.
  void RestartAt(absl::Time when, const std::string& worker);

  // Runs until every call has ended and every worker alive is idle, or until simulated time reaches `until`.
  // Checks invariants on the way; the first broken one is returned.
  absl::Status Run(absl::Duration until = absl::Hours(1));
  // Every block of every worker alive is FREE and nothing of any call is left anywhere.
  absl::Status CheckQuiescent() const;

  const Answer& answer(CallId call) const { return answers_.at(call); }
  const std::map<CallId, Answer>& answers() const { return answers_; }
  const Options& options() const { return options_; }
  SimWorld& world() { return world_; }
  Router& router() { return *router_; }
  uint64_t bytes_landed() const;
  std::vector<TokenId> Expected(const CallSpec& spec) const;

 private:
  std::shared_ptr<SimWorker> Find(const std::string& name) const;
  void AddWorker(const std::string& name);
  void Probe();
  void Perform(RouterActions actions);
  template <typename Worker, typename Request, typename OnEvent>
  void OpenLeg(const LegKey& key, const std::string& worker, Request request, absl::Time deadline,
               OnEvent on_event);
  void OnLegClosedLater(const LegKey& key, const absl::Status& status);
  void Deliver(SendToClient send);
  bool Done() const;
  absl::Status CheckInvariants() const;

  const Options options_;
  SimWorld world_;
  ByteTokenizer tokenizer_;
  std::unique_ptr<Router> router_;
  SimTimer router_timer_;
  std::map<std::string, std::shared_ptr<SimWorker>> workers_;
  std::vector<std::shared_ptr<SimWorker>> dead_;
  std::map<LegKey, std::pair<std::shared_ptr<SimLeg>, std::shared_ptr<SimWorker>>> legs_;
  std::map<CallId, Answer> answers_;
  uint32_t open_calls_ = 0;
  CallId next_call_ = 1;
  uint32_t instances_ = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIMULATED_SYSTEM_H_
