#ifndef BATON_ROUTER_GENERATE_CALL_H_
#define BATON_ROUTER_GENERATE_CALL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/random_source.h"
#include "common/transfer_id.h"
#include "engine/tokenizer/tokenizer.h"
#include "router/call_answer.h"
#include "router/call_leg.h"
#include "router/call_losses.h"
#include "router/call_spec.h"
#include "router/call_timeline.h"
#include "router/pair_picker.h"
#include "router/router_actions.h"
#include "router/worker_registry.h"

namespace baton {

struct GenerateCallOptions {
  LegLimits leg;
  LossLimits losses;
  absl::Duration queue_limit = absl::Seconds(60);  // the longest wait for a pair, before the first token
  absl::Duration worker_wait = absl::Seconds(5);   // the longest wait while no decode worker serves
  absl::Duration resume_wait = absl::Seconds(30);  // the same for an answer that has begun
};

// One request, from its admission to its last message. A state machine without thread, socket or clock: it
// takes events and appends actions. Belongs to the router's executor; owned by Router.
//
//   QUEUED --OnPair--> RESERVING --Reserved--> PREFILLING --token 0--> DECODING --last token--> ENDED
//     ^                (decode leg)            (both legs)             (decode leg)
//     |                    |                       |                       |
//     +---- a leg ends, is lost or refuses: both legs are ended, a new attempt replays the accepted tokens
//
// Every token has its index in the answer; the call takes each index once, in order, from whichever leg
// brings it first. With the handoff committed (Landed) the prefill leg's outcome no longer matters. When the
// answer ends is decided here, by CallAnswer; whatever legs are still open then are cancelled. What a leg may
// do and when it is lost is CallLeg's to say; what follows from a loss is retry_table.h's and CallLosses'.
class GenerateCall {
 public:
  // The pointers outlive the call.
  GenerateCall(CallId id, CallSpec spec, const GenerateCallOptions* options, const Tokenizer* tokenizer,
               WorkerRegistry* registry, RandomSource* random, absl::Time now);

  // What it needs of a pair, while it is queued and its time has come (again).
  bool WantsPair(absl::Time now) const { return state_ == State::kQueued && now >= not_before_; }
  PairRequest pair_request(absl::Time now) const;
  void OnPair(const Pair& pair, absl::Time now, RouterActions& actions);
  // The next attempt replaces a lost one, so it takes of the router's retry budget; while there is nothing to
  // take, it is held.
  bool owes_retry() const { return losses_.owes_retry(); }
  void HoldRetry(absl::Time until) { not_before_ = until; }
  // No decode worker serves now, or none could ever hold it.
  void OnNoWorker(absl::Time now, RouterActions& actions);
  void OnTooLarge(uint64_t largest_tokens, absl::Time now, RouterActions& actions);

  void OnPrefillEvent(uint32_t attempt, const v1::PrefillEvent& event, absl::Time now,
                      RouterActions& actions);
  void OnDecodeEvent(uint32_t attempt, const v1::DecodeEvent& event, absl::Time now, RouterActions& actions);
  void OnLegClosed(uint32_t attempt, Leg leg, const absl::Status& status, absl::Time now,
                   RouterActions& actions);
  // Some address was taken over by another process: legs to the one before are lost.
  void OnReplacement(absl::Time now, RouterActions& actions);

  // The client has gone (CANCELLED), or an operator aborts (ABORTED).
  void End(const absl::Status& status, absl::Time now, RouterActions& actions);

  absl::Time next_timer() const;
  void OnTimer(absl::Time now, RouterActions& actions);

  CallId id() const { return id_; }
  const CallSpec& spec() const { return spec_; }
  bool queued() const { return state_ == State::kQueued; }
  bool ended() const { return state_ == State::kEnded; }
  bool has_tokens() const { return !answer_.tokens().empty(); }
  // It had a pair: it has waited for its turn once and goes before those that have not.
  bool had_pair() const { return had_pair_; }
  absl::Time queued_since() const { return timeline_.queued_since(); }
  absl::Status CheckInvariants() const;

 private:
  enum class State { kQueued, kReserving, kPrefilling, kDecoding, kEnded };

  static const char* PhaseName(State state);

  void OpenDecode(absl::Time now, RouterActions& actions);
  void OpenPrefill(const v1::Landing& landing, absl::Time now, RouterActions& actions);
  v1::Attempt MakeAttempt(const CallLeg& leg) const;
  v1::TokenRequest MakeTokenRequest() const;
  void OnFirstToken(const v1::FirstToken& first, absl::Time now, RouterActions& actions);
  void OnReserved(const v1::Reserved& reserved, absl::Time now, RouterActions& actions);
  void OnLanded(const v1::Landed& landed, absl::Time now);
  void OnTokens(const v1::Tokens& tokens, absl::Time now, RouterActions& actions);
  void AcceptTokens(const v1::Tokens& tokens, absl::Time now, RouterActions& actions);
  void AcceptToken(uint32_t index, const v1::LegToken& token,
                   const CallAnswer::PromptLogprobs& prompt_logprobs, absl::Time now, RouterActions& actions);
  void Finish(v1::GenerateStreamResponse response, v1::Finish finish, std::optional<absl::Duration> gap,
              absl::Time now, RouterActions& actions);

  // The attempt cannot go on: it is ended, and the call queues again or ends with the status.
  void FailAttempt(Leg leg, const absl::Status& status, absl::Time now, RouterActions& actions);
  void TellRegistry(Blame blame, const CallLeg& leg, const absl::Status& status, absl::Time now);
  void CloseLegs(RouterActions& actions);
  CallLeg& LegOf(Leg leg) { return leg == Leg::kPrefill ? prefill_ : decode_; }
  void Enqueue(absl::Time now, absl::Time not_before);
  // They come from prefill, with token 0: decode's tokens are held until then.
  bool AwaitsPromptLogprobs() const { return spec_.prompt_logprobs && !has_tokens() && prefill_.assigned(); }
  bool OfThisAttempt(uint32_t attempt) const { return !ended() && !queued() && attempt == attempt_; }

  const CallId id_;
  const CallSpec spec_;
  const GenerateCallOptions* const options_;
  const Tokenizer* const tokenizer_;
  WorkerRegistry* const registry_;
  RandomSource* const random_;

  State state_ = State::kQueued;
  absl::Time not_before_;  // when it may be given a pair (again)
  // The latest attempt.
  uint32_t attempt_ = 0;
  bool had_pair_ = false;
  TransferId transfer_id_;
  CallLeg prefill_;
  CallLeg decode_;
  bool landed_ = false;   // its KV is at decode
  bool resumes_ = false;  // it began with tokens
  std::vector<v1::Tokens> held_;
  Pair pair_;

  CallLosses losses_;
  // Of the attempt that brought the latest token.
  std::string fingerprint_;
  std::string prefill_recipe_;
  std::string decode_recipe_;
  CallAnswer answer_;
  v1::FinishReason finish_reason_ = v1::FINISH_REASON_UNSPECIFIED;
  CallTimeline timeline_;
};

}  // namespace baton

#endif  // BATON_ROUTER_GENERATE_CALL_H_
