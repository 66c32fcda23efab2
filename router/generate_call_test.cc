#include "router/generate_call.h"

#include "common/error_details.h"
#include "common/protocol_version.h"
#include "common/seeded_random_source.h"
#include "gtest/gtest.h"
#include "tests/support/byte_tokenizer.h"

namespace baton {
namespace {

const absl::Status kLost = absl::UnavailableError("reset");

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
    v1::GetServerInfoResponse info;
    info.set_role(role);
    info.set_instance_id(instance);
    info.set_protocol_min(kOldestProtocolVersion);
    info.set_protocol_max(kProtocolVersion);
    registry.OnInfo(name, info);
  }

  GenerateCall& Call() {
    if (!call) call.emplace(1, spec, &options, &tokenizer, &registry, &random, now);
    return *call;
  }
  void Assign() { Call().OnPair({"p", "d", v1::SERVING_PATH_DISAGGREGATED, ""}, now, actions); }
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
  GenerateCallOptions options;
  ByteTokenizer tokenizer;
  WorkerRegistry registry{""};
  SeededRandomSource random{1};
  CallSpec spec;
  std::optional<GenerateCall> call;
  RouterActions actions;
};

TEST_F(GenerateCallTest, TakesEachIndexOnceFromWhicheverLegIsFirst) {
  UpToToken0();
  Landed();
  Tokens(0, {'x'});
  Tokens(1, {'y', 'z'});
  Tokens(2, {'z', 'w'});
  EXPECT_EQ(Text(), "xyzw");
}

TEST_F(GenerateCallTest, Token0MayComeFromDecodeFirst) {
  Assign();
  Reserved();
  Tokens(0, {'x'});
  FirstToken('x');
  Tokens(1, {'y'});
  EXPECT_EQ(Text(), "xy");
}

TEST_F(GenerateCallTest, ASkippedTokenIsABugOfTheWorker) {
  UpToToken0();
  Tokens(2, {'z'});
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kInternal);
}

TEST_F(GenerateCallTest, AStopTokenEndsWithoutItsText) {
  spec.skip_special_tokens = false;
  UpToToken0();
  Tokens(1, {ByteTokenizer::kEnd, 'q'});
  EXPECT_TRUE(EndStatus().ok());
  EXPECT_EQ(Text(), "x");
  const v1::GenerateStreamResponse last = Of<SendToClient>().back().response;
  EXPECT_EQ(last.finish().stop_token(), ByteTokenizer::kEnd);
  EXPECT_EQ(last.usage().completion_tokens(), 2);
  EXPECT_EQ(Of<CancelLeg>().size(), 2);
}

TEST_F(GenerateCallTest, IncludeStopKeepsTheTokensText) {
  spec.skip_special_tokens = false;
  spec.include_stop = true;
  UpToToken0();
  Tokens(1, {ByteTokenizer::kEnd});
  EXPECT_EQ(Text(), "x<end>");
}

TEST_F(GenerateCallTest, NothingStopsAnAnswerBeforeMinTokens) {
  spec.min_tokens = 3;
  spec.stop_strings = {"xy"};
  UpToToken0();
  Tokens(1, {'y', 'x', 'y'});
  EXPECT_EQ(Text(), "xy");
  EXPECT_EQ(Of<SendToClient>().back().response.finish().stop_string(), "xy");
}

TEST_F(GenerateCallTest, MaxTokensEndsWithLengthAndWhatWasHeldBack) {
  spec.max_tokens = 3;
  spec.stop_strings = {"zz"};
  UpToToken0();
  Tokens(1, {'y', 'z', 'q'});
  EXPECT_TRUE(EndStatus().ok());
  EXPECT_EQ(Text(), "xyz");
  EXPECT_EQ(Of<SendToClient>().back().response.finish().reason(), v1::FINISH_REASON_LENGTH);
}

TEST_F(GenerateCallTest, OnceLandedThePrefillLegsOutcomeDoesNotMatter) {
  UpToToken0();
  Landed();
  Call().OnLegClosed(0, Leg::kPrefill, kLost, now, actions);
  Tokens(1, {'y'});
  EXPECT_EQ(Text(), "xy");
  EXPECT_TRUE(Of<EndCall>().empty());
}

TEST_F(GenerateCallTest, BeforeThatItCostsAnAttemptThatReplaysWhatTheClientHas) {
  UpToToken0();
  Call().OnLegClosed(0, Leg::kPrefill, kLost, now, actions);
  EXPECT_TRUE(Call().queued());
  EXPECT_EQ(Of<AttemptLost>().size(), 1);
  EXPECT_EQ(Of<CancelLeg>().size(), 1);
  EXPECT_EQ(Call().pair_request().suspects, (std::vector<std::string>{"p"}));
  Assign();
  const v1::DecodeRequest second = Of<OpenDecodeLeg>().back().request;
  EXPECT_EQ(second.request().output_size(), 1);
  EXPECT_NE(second.attempt().transfer_id(), Of<OpenDecodeLeg>().front().request.attempt().transfer_id());
  Reserved(1);
  Tokens(1, {'q'});  // of the lost attempt
  Tokens(1, {'y'}, 1);
  EXPECT_EQ(Text(), "xy");
}

TEST_F(GenerateCallTest, AFailedHandoffMakesThePairSuspectNotTheWorkers) {
  UpToToken0();
  Call().OnLegClosed(0, Leg::kPrefill, WithErrorInfo(kLost, "HANDOFF_FAILED"), now, actions);
  EXPECT_TRUE(Call().pair_request().suspects.empty());
  EXPECT_EQ(Call().pair_request().suspect_pairs.size(), 1);
}

TEST_F(GenerateCallTest, ARefusalForRoomIsNoLoss) {
  for (uint32_t attempt = 0; attempt < 5; ++attempt) {
    Assign();
    Call().OnLegClosed(attempt, Leg::kDecode, absl::ResourceExhaustedError("full"), now, actions);
    EXPECT_TRUE(Call().queued());
    EXPECT_FALSE(Call().WantsPair(now));
    now += options.requeue_delay;
    EXPECT_TRUE(Call().WantsPair(now));
  }
  EXPECT_TRUE(Of<EndCall>().empty());
}

TEST_F(GenerateCallTest, ASilentLegIsLost) {
  Assign();
  Reserved();
  now += options.leg_silence;
  EXPECT_EQ(Call().next_timer(), now);
  Call().OnTimer(now, actions);
  EXPECT_TRUE(Call().queued());
}

TEST_F(GenerateCallTest, TheSecondLostWorkerEndsIt) {
  UpToToken0();
  Call().OnLegClosed(0, Leg::kDecode, kLost, now, actions);
  Serve("d", v1::ROLE_DECODE, "d-2");
  Assign();
  Call().OnLegClosed(1, Leg::kDecode, kLost, now, actions);
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(EndStatus()), "WORKER_LOST");
}

TEST_F(GenerateCallTest, OneWorkerLostTwiceIsOneLossButAttemptsHaveABound) {
  for (uint32_t attempt = 0; attempt + 1 < options.max_lost_attempts; ++attempt) {
    Assign();
    Call().OnLegClosed(attempt, Leg::kDecode, kLost, now, actions);
    EXPECT_TRUE(Call().queued());
  }
  Assign();
  Call().OnLegClosed(options.max_lost_attempts - 1, Leg::kDecode, kLost, now, actions);
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kUnavailable);
}

TEST_F(GenerateCallTest, AnAbortEndsBothLegs) {
  UpToToken0();
  Call().End(absl::AbortedError("by an operator"), now, actions);
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Of<CancelLeg>().size(), 2);
  Call().End(absl::CancelledError(""), now, actions);
  EXPECT_EQ(Of<EndCall>().size(), 1);
}

TEST_F(GenerateCallTest, WaitingHasABound) {
  Call();
  EXPECT_EQ(Call().next_timer(), now + options.queue_limit);
  now += options.queue_limit;
  Call().OnTimer(now, actions);
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetRetryDelay(EndStatus()).has_value());
}

}  // namespace
}  // namespace baton
