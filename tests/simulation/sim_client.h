#ifndef BATON_TESTS_SIMULATION_SIM_CLIENT_H_
#define BATON_TESTS_SIMULATION_SIM_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "router/call_spec.h"
#include "router/router_actions.h"
#include "tests/simulation/call_board.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"

namespace baton {

inline constexpr char kClientAddress[] = "client";
inline constexpr char kRouterAddress[] = "router";

// What a client saw of one call.
struct ClientAnswer {
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

// All clients: each call is one stream to the router.
class SimClient : public SimProcess {
 public:
  SimClient(SimWorld* world, SimNetwork* network, CallBoard* board)
      : SimProcess(world, network, kClientAddress, "client", absl::ZeroDuration()), board_(board) {}

  // Sends a call now. Its prompt, limits, stops and deadline are the caller's, the rest is filled in.
  void Submit(CallId id, CallSpec spec);
  void Cancel(CallId id);
  // The client reads nothing more until Resume.
  void PauseReading(CallId id) { calls_.at(id).reading = false; }
  void ResumeReading(CallId id);
  // Messages that have reached a client that does not read them.
  size_t unread(CallId id) const { return calls_.at(id).unread.size(); }

  const ClientAnswer& answer(CallId id) const { return answers_.at(id); }
  const std::map<CallId, ClientAnswer>& answers() const { return answers_; }
  uint32_t open_calls() const { return static_cast<uint32_t>(calls_.size() - ended_); }

 private:
  struct Call {
    std::shared_ptr<SimStream> stream;
    bool reading = true;
    std::vector<v1::GenerateStreamResponse> unread;
    std::optional<absl::Status> unread_end;
  };
  void OnResponse(CallId id, const v1::GenerateStreamResponse& response);
  void OnEnd(CallId id, const absl::Status& status);
  void Read(ClientAnswer& answer, const v1::GenerateStreamResponse& response);

  CallBoard* const board_;
  std::map<CallId, Call> calls_;
  std::map<CallId, ClientAnswer> answers_;
  size_t ended_ = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_CLIENT_H_
