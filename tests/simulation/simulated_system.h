#ifndef BATON_TESTS_SIMULATION_SIMULATED_SYSTEM_H_
#define BATON_TESTS_SIMULATION_SIMULATED_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/call_board.h"
#include "tests/simulation/sim_client.h"
#include "tests/simulation/sim_decode.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_prefill.h"
#include "tests/simulation/sim_router.h"
#include "tests/simulation/sim_world.h"
#include "tests/support/byte_tokenizer.h"

namespace baton {

v1::Role RoleOfAddress(const std::string& address);

// The whole system in one thread under simulated time: the real router, prefill and decode machines, the real
// senders, landing tables and KV backend, real KV pools, and an engine whose answers depend on every byte of
// KV. Links and steps take the time that the options say. A run is a function of its options.
class SimulatedSystem {
 public:
  struct Options {
    uint64_t seed = 1;
    bool trace = false;
    uint32_t prefill_workers = 2;
    uint32_t decode_workers = 2;
    SimNetwork::Options network;
    LinkDelays client_link = {absl::ZeroDuration(), absl::ZeroDuration(), 0, absl::ZeroDuration()};
    WorkerPace pace;
    SimPrefill::Options prefill = {
        .scheduler = {.token_budget = 64, .chunk_tokens = 32, .min_chunk_tokens = 8}};
    SimDecode::Options decode = {
        .scheduler = {.token_budget = 64, .chunk_tokens = 32, .min_chunk_tokens = 8}};
    SimRouter::Options router;
    uint32_t check_every = 64;  // events between two checks of every invariant
  };

  explicit SimulatedSystem(const Options& options);
  ~SimulatedSystem();

  // A client's call at `when`; `spec.prompt`, limits and stops are the caller's, the rest is filled in.
  CallId Submit(absl::Time when, CallSpec spec);
  void CancelAt(absl::Time when, CallId call);
  void KillAt(absl::Time when, const std::string& worker);
  // A new process at the same address, with empty pools.
  void RestartAt(absl::Time when, const std::string& worker);
  // The same, now.
  void StartWorker(const std::string& address);
  void RestartRouter();

  // Runs until every call has ended and every worker alive is idle, or until simulated time reaches `until`.
  // Checks invariants on the way; the first broken one is returned.
  absl::Status Run(absl::Duration until = absl::Hours(1));
  // Runs everything that happens until then, or one event.
  absl::Status RunUntil(absl::Time when);
  absl::Status RunOne();
  absl::Status CheckInvariants() const;
  // Every block of every worker alive is FREE and nothing of any call is left anywhere.
  absl::Status CheckQuiescent() const;
  // After the last tombstone's life: nothing is remembered, no timer runs, no stream is open.
  absl::Status CheckForgotten() const;

  const ClientAnswer& answer(CallId call) const { return client_.answer(call); }
  const std::map<CallId, ClientAnswer>& answers() const { return client_.answers(); }
  const Options& options() const { return options_; }
  SimWorld& world() { return world_; }
  SimNetwork& network() { return network_; }
  CallBoard& board() { return board_; }
  SimClient& client() { return client_; }
  SimRouter& router() { return *router_; }
  // The process that runs at this address, or the last that did.
  SimWorker& worker(const std::string& address) const { return *workers_.at(address); }
  std::vector<std::string> worker_addresses() const;
  // Where an instance ran; empty when there was none.
  std::string AddressOf(const std::string& instance_id) const;
  uint32_t open_calls() const { return submitted_ - answers_ended(); }
  uint64_t bytes_landed() const;
  std::vector<TokenId> Expected(const CallSpec& spec, CallId call) const;

 private:
  uint32_t answers_ended() const { return static_cast<uint32_t>(answers().size()) - client_.open_calls(); }
  bool Done() const;

  const Options options_;
  SimWorld world_;
  SimNetwork network_;
  CallBoard board_;
  const WorkerParts parts_;
  ByteTokenizer tokenizer_;
  SimClient client_;
  std::unique_ptr<SimRouter> router_;
  std::map<std::string, std::unique_ptr<SimWorker>> workers_;
  std::vector<std::unique_ptr<SimProcess>> ended_;  // streams still know them
  std::map<std::string, std::string> addresses_;    // by instance id
  uint32_t submitted_ = 0;
  uint32_t instances_ = 0;
  uint64_t events_ = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIMULATED_SYSTEM_H_
