#ifndef BATON_TESTS_SIMULATION_SIM_ROUTER_H_
#define BATON_TESTS_SIMULATION_SIM_ROUTER_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "baton/v1/inference.pb.h"
#include "engine/tokenizer/tokenizer.h"
#include "router/router.h"
#include "tests/simulation/call_board.h"
#include "tests/simulation/sim_client.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_worker.h"

namespace baton {

// The router: its real machines on the loop, and what its shell does beside them: it probes the workers.
class SimRouter : public SimProcess {
 public:
  struct Options {
    RouterOptions router;
    std::string model_hash = "scripted";
    absl::Duration probe_interval = absl::Milliseconds(500);
    absl::Duration probe_timeout = absl::Seconds(1);
    size_t max_unread = 8;  // messages that a client may leave unread
  };
  using OnResponse = std::function<void(const v1::GenerateStreamResponse&)>;
  // A leg that is open in this router's eyes.
  struct LegView {
    LegKey key;
    TransferId transfer_id;
    std::string worker;  // address
    std::shared_ptr<SimStream> stream;
  };

  SimRouter(const WorkerParts& parts, std::string instance_id, const Options& options,
            const Tokenizer* tokenizer, SimClient* client);

  // As the list of workers changes.
  void AddWorker(const std::string& address, v1::Role role);
  void RemoveWorker(const std::string& address);
  void StopProbing() { probing_ = false; }
  // Refuses new calls; those that run go on.
  void Drain() { draining_ = true; }
  // A call of GenerateStream.
  void OnGenerate(const std::shared_ptr<SimStream>& stream, CallId id, CallSpec spec,
                  absl::Duration time_left, OnResponse on_response);
  void Abort(const std::string& request_id);

  Router& router() { return router_; }
  const Router& router() const { return router_; }
  absl::Status CheckInvariants() const;
  const std::map<LegKey, LegView>& legs() const { return legs_; }
  // Called when a call has ended here, with the legs that were open until then.
  void OnCallEnded(std::function<void(CallId, const std::vector<LegView>&)> listener) {
    on_call_ended_ = std::move(listener);
  }

 private:
  struct ClientCall {
    std::shared_ptr<SimStream> stream;
    OnResponse on_response;
    bool has_hole = false;  // a message did not fit
    int tokens = 0;         // that the router has taken
  };
  void Perform(RouterActions actions);
  void Do(OpenPrefillLeg& action);
  void Do(OpenDecodeLeg& action);
  void Do(CancelLeg& action, std::vector<LegView>* cancelled);
  void Do(SendToClient& action);
  void Do(EndCall& action, const std::vector<LegView>& cancelled);
  template <typename Worker, typename Request, typename OnEvent>
  void OpenLeg(const LegKey& key, const std::string& worker, Request request, absl::Time deadline,
               OnEvent on_event);
  void ProbeAll();
  void Probe(const std::string& address);

  const Options options_;
  CallBoard* const board_;
  SimClient* const client_;
  Router router_;
  SimTimer timer_;
  std::map<LegKey, LegView> legs_;
  std::map<CallId, ClientCall> calls_;
  std::set<std::string> workers_;
  bool probing_ = true;
  bool draining_ = false;
  absl::Status replays_;  // not OK: an attempt was not told of every token that had been taken
  std::function<void(CallId, const std::vector<LegView>&)> on_call_ended_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_ROUTER_H_
