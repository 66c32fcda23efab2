#ifndef BATON_ROUTER_GENERATE_CALL_H_
#define BATON_ROUTER_GENERATE_CALL_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/random_source.h"
#include "common/transfer_id.h"
#include "engine/tokenizer/tokenizer.h"
#include "router/answer_text.h"
#include "router/call_spec.h"
#include "router/call_timeline.h"
#include "router/pair_picker.h"
#include "router/router_actions.h"
#include "router/worker_registry.h"

namespace baton {

struct GenerateCallOptions {
  absl::Duration leg_silence = absl::Seconds(3);   // a leg without a message for this long is lost
  absl::Duration queue_limit = absl::Seconds(60);  // the longest wait for a pair, before the first token
  absl::Duration worker_wait = absl::Seconds(5);   // the longest wait while no decode worker serves
  absl::Duration requeue_delay = absl::Milliseconds(10);
  uint32_t max_lost_workers = 2;   // a request that was computed on so many lost workers may be the cause
  uint32_t max_lost_attempts = 4;  // for whatever reason, refusals for want of room excepted
};

// One request, from its admission to its last message. A state machine without thread, socket or clock: it
// takes events and appends actions. Belongs to the router's executor; owned by Router.
//
//   QUEUED --OnPair--> RESERVING --Reserved--> PREFILLING --token 0--> DECODING --last token--> ENDED
//     ^                (decode leg)            (both legs)             (decode leg)
//     |                    |                       |                       |
//     +---- a leg ends, is silent or refuses: both legs are ended, a new attempt replays the accepted tokens
//
// Every token has its index in the answer; the call takes each index once, in order, from whichever leg
// brings it first. With the handoff committed (Landed) the prefill leg's outcome no longer matters. The stop
// conditions are decided here, so an answer ends the same way wherever its tokens come from; whatever legs
// are still open then are cancelled.
class GenerateCall {
 public:
  // The pointers outlive the call.
  GenerateCall(CallId id, CallSpec spec, const GenerateCallOptions* options, const Tokenizer* tokenizer,
               WorkerRegistry* registry, RandomSource* random, absl::Time now);

  // What it needs of a pair, while it is queued and its time has come (again).
  bool WantsPair(absl::Time now) const { return state_ == State::kQueued && now >= not_before_; }
  PairRequest pair_request() const;
  void OnPair(const Pair& pair, absl::Time now, RouterActions& actions);
  // No decode worker serves now, or none could ever hold it.
  void OnNoWorker(absl::Time now, RouterActions& actions);
  void OnTooLarge(uint64_t largest_tokens, absl::Time now, RouterActions& actions);

  void OnPrefillEvent(uint32_t attempt, const v1::PrefillEvent& event, absl::Time now,
                      RouterActions& actions);
  void OnDecodeEvent(uint32_t attempt, const v1::DecodeEvent& event, absl::Time now, RouterActions& actions);
  void OnLegClosed(uint32_t attempt, Leg leg, const absl::Status& status, absl::Time now,
                   RouterActions& actions);

  // The client has gone (CANCELLED), or an operator aborts (ABORTED).
  void End(const absl::Status& status, absl::Time now, RouterActions& actions);

  absl::Time next_timer() const;
  void OnTimer(absl::Time now, RouterActions& actions);

  CallId id() const { return id_; }
  const CallSpec& spec() const { return spec_; }
  bool queued() const { return state_ == State::kQueued; }
  bool ended() const { return state_ == State::kEnded; }
  // Its client has seen tokens: it goes before those that wait for their first.
  bool has_tokens() const { return !accepted_.empty(); }
  absl::Time queued_since() const { return timeline_.queued_since(); }
  absl::Status CheckInvariants() const;

 private:
  enum class State { kQueued, kReserving, kPrefilling, kDecoding, kEnded };

  static const char* PhaseName(State state);

  struct OpenLeg {
    bool open = false;
    absl::Time heard;  // the latest message
    std::string worker;
    std::string instance_id;
    Assignment assignment;
  };
  struct Attempt {
    uint32_t number = 0;
    TransferId transfer_id;
    OpenLeg prefill;
    OpenLeg decode;
    bool landed = false;
    bool started_with_tokens = false;
  };

  void OpenDecode(absl::Time now, RouterActions& actions);
  void OpenPrefill(const v1::Landing& landing, absl::Time now, RouterActions& actions);
  v1::TokenRequest MakeTokenRequest() const;
  void OnFirstToken(const v1::FirstToken& first, absl::Time now, RouterActions& actions);
  void OnTokens(const v1::Tokens& tokens, absl::Time now, RouterActions& actions);
  void AcceptToken(uint32_t index, const v1::LegToken& token,
                   const google::protobuf::RepeatedPtrField<v1::LegToken>& prompt_logprobs, absl::Time now,
                   RouterActions& actions);
  // How the answer ends with its latest token, if it does; adds what is released of its text.
  std::optional<v1::Finish> FinishAfter(TokenId token, std::string& text);
  v1::GenerateStreamResponse DescribeToken(
      uint32_t index, const v1::LegToken& token,
      const google::protobuf::RepeatedPtrField<v1::LegToken>& prompt_logprobs) const;
  v1::PositionLogprobs DescribeLogprobs(const v1::LegToken& token) const;
  void Finish(v1::GenerateStreamResponse response, v1::Finish finish, std::optional<absl::Duration> gap,
              absl::Time now, RouterActions& actions);

  // The attempt cannot go on: it is ended, and the call queues again or ends with the status.
  void FailAttempt(Leg leg, const absl::Status& status, absl::Time now, RouterActions& actions);
  void CloseLegs(RouterActions& actions);
  // When the leg's silence means that it is lost.
  absl::Time SilentAt(Leg leg) const;
  void Enqueue(absl::Time now, absl::Time not_before);
  v1::Usage usage() const;

  const CallId id_;
  const CallSpec spec_;
  const GenerateCallOptions* const options_;
  const Tokenizer* const tokenizer_;
  WorkerRegistry* const registry_;
  RandomSource* const random_;

  State state_ = State::kQueued;
  absl::Time not_before_;  // when it may be given a pair (again)
  Attempt attempt_;
  uint32_t lost_attempts_ = 0;
  std::set<std::string> lost_instances_;
  std::vector<std::string> suspects_;
  std::vector<std::pair<std::string, std::string>> suspect_pairs_;
  std::string refused_by_;         // the decode worker that had no room for the latest attempt
  std::vector<TokenId> accepted_;  // the answer so far
  v1::FinishReason finish_reason_ = v1::FINISH_REASON_UNSPECIFIED;
  AnswerText text_;
  CallTimeline timeline_;
};

}  // namespace baton

#endif  // BATON_ROUTER_GENERATE_CALL_H_
