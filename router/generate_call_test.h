#ifndef BATON_ROUTER_GENERATE_CALL_TEST_H_
#define BATON_ROUTER_GENERATE_CALL_TEST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/seeded_random_source.h"
#include "gtest/gtest.h"
#include "router/generate_call.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/worker_info.h"

namespace baton {

inline const absl::Status kLost = absl::UnavailableError("reset");

// One call with its events brought by hand.
class GenerateCallTest : public ::testing::Test {
 protected:
  GenerateCallTest() {
    registry.Add("p", v1::ROLE_PREFILL);
    registry.Add("d", v1::ROLE_DECODE);
    Serve("p", v1::ROLE_PREFILL, "p-1");
    Serve("d", v1::ROLE_DECODE, "d-1");
    spec.request_id = "r";
    spec.prompt = {'a', 'b'};
    spec.max_tokens = 8;
    spec.stop_ids = {ByteTokenizer::kEnd};
    spec.arrival = now;
    spec.deadline = now + absl::Minutes(5);
  }

  void Serve(const std::string& name, v1::Role role, const std::string& instance) {
    registry.OnInfo(name, WorkerInfo(role, instance, fingerprint), now);
  }

  GenerateCall& Call() {
    if (!call) call.emplace(1, spec, &options, &tokenizer, &registry, &random, now);
    return *call;
  }
  void Assign(const std::string& prefill = "p") {
    Pair pair;
    pair.prefill = prefill;
    pair.decode = "d";
    pair.path = prefill.empty() ? v1::SERVING_PATH_AGGREGATED : v1::SERVING_PATH_DISAGGREGATED;
    pair.fingerprint = fingerprint;
    pair.decode_recipe = recipe;
    Call().OnPair(pair, now, actions);
  }
  void Closed(Leg leg, const absl::Status& status, uint32_t attempt = 0) {
    Call().OnLegClosed(attempt, leg, status, now, actions);
  }
  // Both workers speak, and say that they have taken so many steps.
  void Progress(double steps, uint32_t attempt = 0) {
    v1::PrefillEvent prefill;
    prefill.mutable_progress()->set_steps(steps);
    Call().OnPrefillEvent(attempt, prefill, now, actions);
    v1::DecodeEvent decode;
    decode.mutable_progress()->set_steps(steps);
    Call().OnDecodeEvent(attempt, decode, now, actions);
  }
  // Time passes, with progress every half second; `steps` rises if the workers step. True when the call
  // queues.
  bool PassTime(absl::Duration time, bool stepping, uint32_t attempt = 0) {
    for (absl::Time end = now + time; now < end && !Call().queued();) {
      now += absl::Milliseconds(500);
      Progress(stepping ? ++steps : steps, attempt);
      Call().OnTimer(now, actions);
    }
    return Call().queued();
  }
  v1::Timings LastTimings() const { return Of<EndCall>().back().timings; }
  void Reserved(uint32_t attempt = 0) {
    v1::DecodeEvent event;
    event.mutable_reserved()->mutable_landing();
    Call().OnDecodeEvent(attempt, event, now, actions);
  }
  void FirstToken(TokenId token, uint32_t attempt = 0) {
    v1::PrefillEvent event;
    event.mutable_first_token()->mutable_token()->set_id(token);
    Call().OnPrefillEvent(attempt, event, now, actions);
  }
  void Landed(uint32_t attempt = 0) {
    v1::DecodeEvent event;
    event.mutable_landed();
    Call().OnDecodeEvent(attempt, event, now, actions);
  }
  void Tokens(uint32_t index, const std::vector<TokenId>& ids, uint32_t attempt = 0) {
    v1::DecodeEvent event;
    event.mutable_tokens()->set_index(index);
    for (TokenId id : ids) event.mutable_tokens()->add_tokens()->set_id(id);
    Call().OnDecodeEvent(attempt, event, now, actions);
  }
  void UpToToken0() {
    Assign();
    Reserved();
    FirstToken('x');
  }

  template <typename Action>
  std::vector<Action> Of() const {
    std::vector<Action> found;
    for (const RouterAction& action : actions) {
      if (const auto* known = std::get_if<Action>(&action)) found.push_back(*known);
    }
    return found;
  }
  std::string Text() const {
    std::string text;
    for (const SendToClient& send : Of<SendToClient>()) text += send.response.text();
    return text;
  }
  absl::Status EndStatus() const {
    const std::vector<EndCall> ends = Of<EndCall>();
    EXPECT_EQ(ends.size(), 1);
    return ends.empty() ? absl::UnknownError("has not ended") : ends[0].status;
  }

  absl::Time now = absl::FromUnixSeconds(1000);
  double steps = 0;
  std::string fingerprint = "f";
  std::string recipe = "r";
  GenerateCallOptions options;
  ByteTokenizer tokenizer;
  WorkerRegistry registry{""};
  SeededRandomSource random{1};
  CallSpec spec;
  std::optional<GenerateCall> call;
  RouterActions actions;
};

}  // namespace baton

#endif  // BATON_ROUTER_GENERATE_CALL_TEST_H_
