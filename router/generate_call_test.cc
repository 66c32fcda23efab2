#include "router/generate_call.h"

#include <algorithm>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/str_cat.h"
#include "gtest/gtest.h"
#include "router/generate_call_test.h"
#include "tests/support/byte_tokenizer.h"

namespace baton {
namespace {

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

TEST_F(GenerateCallTest, PromptLogprobsAreNotLostWhenDecodeIsFirst) {
  spec.prompt_logprobs = 0;
  Assign();
  Reserved();
  Landed();
  Tokens(0, {'x', 'y'});
  EXPECT_EQ(Text(), "");
  v1::PrefillEvent event;
  event.mutable_first_token()->mutable_token()->set_id('x');
  for (const float logprob : {-1.0f, -2.0f}) {
    event.mutable_first_token()->add_prompt_logprobs()->set_logprob(logprob);
  }
  Call().OnPrefillEvent(0, event, now, actions);
  Tokens(2, {'z'});
  EXPECT_EQ(Text(), "xyz");
  EXPECT_EQ(Of<SendToClient>().front().response.prompt().logprobs_size(), 2);
  Closed(Leg::kPrefill, absl::UnavailableError("gone"));  // of no matter any more
  EXPECT_TRUE(Of<AttemptLost>().empty());
}

TEST_F(GenerateCallTest, APrefillWorkerThatIsLostBeforeItsPromptLogprobsCostsAnAttempt) {
  spec.prompt_logprobs = 0;
  Assign();
  Reserved();
  Landed();
  Tokens(0, {'x'});
  Closed(Leg::kPrefill, absl::UnavailableError("gone"));
  EXPECT_EQ(Of<AttemptLost>().size(), 1);
  EXPECT_TRUE(Call().queued());
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
  EXPECT_EQ(Call().pair_request(now).suspects, (std::vector<std::string>{"p"}));
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
  Closed(Leg::kPrefill, WithErrorInfo(kLost, kReasonHandoffFailed));
  EXPECT_TRUE(Call().pair_request(now).suspects.empty());
  EXPECT_FALSE(Call().pair_request(now).suspect_pairs.empty());
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "handoff");
  // Other requests keep off it too.
  const std::vector<std::pair<std::string, std::string>> pair = {{"p", "d"}};
  EXPECT_EQ(registry.SuspectPairs(now), pair);
}

TEST_F(GenerateCallTest, ARefusalForRoomIsNoLoss) {
  absl::Duration longest;
  for (uint32_t attempt = 0; attempt < 8; ++attempt) {
    Assign();
    Closed(Leg::kDecode, absl::ResourceExhaustedError("full"), attempt);
    EXPECT_TRUE(Call().queued());
    EXPECT_FALSE(Call().WantsPair(now));
    EXPECT_FALSE(Call().owes_retry());
    EXPECT_EQ(Call().pair_request(now).suspects, (std::vector<std::string>{"d"}));
    const absl::Time since = now;
    while (!Call().WantsPair(now)) now += absl::Milliseconds(1);
    longest = std::max(longest, now - since);
  }
  EXPECT_GT(longest, options.losses.backoff);
  EXPECT_LE(longest, options.losses.longest_backoff);
  EXPECT_TRUE(Of<EndCall>().empty());
}

TEST_F(GenerateCallTest, MovesByDrainDoNotCount) {
  for (uint32_t attempt = 0; attempt < 8; ++attempt) {
    Serve("d", v1::ROLE_DECODE, StrCat("d-", attempt));
    Assign();
    Closed(Leg::kDecode, WithErrorInfo(kLost, kReasonDraining), attempt);
    EXPECT_TRUE(Call().queued());
    EXPECT_FALSE(Call().owes_retry());
    EXPECT_FALSE(registry.CanServe());
  }
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "draining");
  EXPECT_TRUE(Of<EndCall>().empty());
}

TEST_F(GenerateCallTest, ASilentLegIsLost) {
  Assign();
  Reserved();
  now += options.leg.silence;
  EXPECT_EQ(Call().next_timer(), now);
  Call().OnTimer(now, actions);
  EXPECT_TRUE(Call().queued());
  EXPECT_TRUE(Call().owes_retry());
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "silent");
}

TEST_F(GenerateCallTest, BudgetsAreCutFromTheDeadline) {
  spec.deadline = now + absl::Seconds(3);
  Assign();
  EXPECT_EQ(Call().next_timer(), now + absl::Milliseconds(1500));
  now += absl::Milliseconds(1500);
  Call().OnTimer(now, actions);
  Assign();
  EXPECT_EQ(Call().next_timer(), now + options.leg.shortest);
}

TEST_F(GenerateCallTest, AWorkerThatSpeaksAndTakesNoStepsIsLeft) {
  Assign();
  Reserved();
  EXPECT_FALSE(PassTime(absl::Minutes(1), /*stepping=*/true));
  EXPECT_TRUE(PassTime(options.leg.stall, /*stepping=*/false));
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "stalled");
  EXPECT_EQ(Of<AttemptLost>()[0].worker, "p");
}

TEST_F(GenerateCallTest, ADecodeWorkerMayStandStillUntilTheKvIsThereAndNotAfterwards) {
  Assign();
  Reserved();
  FirstToken('x');
  Landed();
  EXPECT_FALSE(PassTime(absl::Seconds(20), /*stepping=*/true));
  EXPECT_TRUE(PassTime(options.leg.stall, /*stepping=*/false));
  EXPECT_EQ(Of<AttemptLost>()[0].worker, "d");
  EXPECT_EQ(Of<AttemptLost>()[0].phase, std::string("decoding"));
}

TEST_F(GenerateCallTest, AHandoffHasABound) {
  UpToToken0();
  EXPECT_FALSE(PassTime(options.leg.handoff - absl::Seconds(1), /*stepping=*/false));
  EXPECT_TRUE(PassTime(absl::Seconds(1), /*stepping=*/false));
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "handoff");
}

TEST_F(GenerateCallTest, AHandoffThatPrefillCallsDoneHasABoundToo) {
  UpToToken0();
  Closed(Leg::kPrefill, absl::OkStatus());
  EXPECT_TRUE(PassTime(options.leg.handoff, /*stepping=*/false));
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "handoff");
}

TEST_F(GenerateCallTest, LegsToAProcessThatIsNoMoreAreLost) {
  UpToToken0();
  Landed();
  Serve("p", v1::ROLE_PREFILL, "p-2");
  Call().OnReplacement(now, actions);
  EXPECT_FALSE(Call().queued());  // it has done its part
  Serve("d", v1::ROLE_DECODE, "d-2");
  Call().OnReplacement(now, actions);
  EXPECT_TRUE(Call().queued());
  EXPECT_EQ(Of<AttemptLost>()[0].reason, "restarted");
  EXPECT_EQ(Of<CancelLeg>().size(), 2);
}

TEST_F(GenerateCallTest, EachLegNamesTheProcessThatIsMeant) {
  spec.priority = -3;
  Assign();
  Reserved();
  EXPECT_EQ(Of<OpenDecodeLeg>()[0].request.attempt().instance_id(), "d-1");
  EXPECT_EQ(Of<OpenDecodeLeg>()[0].request.priority(), -3);
  EXPECT_EQ(Of<OpenPrefillLeg>()[0].request.attempt().instance_id(), "p-1");
}

TEST_F(GenerateCallTest, TheSecondLostWorkerEndsIt) {
  UpToToken0();
  Closed(Leg::kDecode, kLost);
  Serve("d", v1::ROLE_DECODE, "d-2");
  Assign();
  Closed(Leg::kDecode, kLost, 1);  // it had said nothing yet: nothing was computed there
  EXPECT_TRUE(Call().queued());
  Serve("d", v1::ROLE_DECODE, "d-3");
  Assign();
  Reserved(2);
  Closed(Leg::kDecode, kLost, 2);
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(EndStatus()), "WORKER_LOST");
}

TEST_F(GenerateCallTest, OneWorkerLostTwiceIsOneLossButAttemptsHaveABound) {
  for (uint32_t attempt = 0; attempt + 1 < options.losses.max_lost_attempts; ++attempt) {
    Assign();
    Closed(Leg::kDecode, kLost, attempt);
    EXPECT_TRUE(Call().queued());
  }
  Assign();
  Closed(Leg::kDecode, kLost, options.losses.max_lost_attempts - 1);
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kUnavailable);
}

TEST_F(GenerateCallTest, ALegThatEndsAtTheCallsDeadlineBlamesNobody) {
  Assign();
  now = spec.deadline - absl::Milliseconds(1);
  Closed(Leg::kDecode, absl::DeadlineExceededError(""));
  EXPECT_EQ(EndStatus().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(registry.CanServe());
}

TEST_F(GenerateCallTest, AnAnswerGoesOnWithinItsFingerprintAndAnotherRecipeIsShown) {
  UpToToken0();
  EXPECT_EQ(Call().pair_request(now).fingerprint, "f");
  EXPECT_EQ(Call().pair_request(now).decode_recipe, "r");
  Closed(Leg::kPrefill, kLost);
  recipe = "another";
  Assign("");
  Reserved(1);
  Tokens(1, {ByteTokenizer::kEnd}, 1);
  EXPECT_EQ(LastTimings().recipe_changes(), 1);
}

TEST_F(GenerateCallTest, UsageBillsNoRetriedWork) {
  Assign();
  Reserved();
  Closed(Leg::kPrefill, kLost);
  Assign();
  Reserved(1);
  v1::PrefillEvent event;
  event.mutable_first_token()->mutable_token()->set_id('x');
  event.mutable_first_token()->set_cached_tokens(1);
  Call().OnPrefillEvent(1, event, now, actions);
  EXPECT_EQ(Of<SendToClient>()[0].response.prompt().cached_tokens(), 1);
  Closed(Leg::kDecode, WithErrorInfo(kLost, kReasonDraining), 1);
  Assign();
  Reserved(2);
  FirstToken('x', 2);
  Landed(2);
  Tokens(1, {'y', ByteTokenizer::kEnd}, 2);
  const v1::Usage usage = Of<EndCall>()[0].usage;
  EXPECT_EQ(usage.prompt_tokens(), 2);
  EXPECT_EQ(usage.cached_tokens(), 1);  // as the attempt that brought token 0 said
  EXPECT_EQ(usage.completion_tokens(), 3);
  EXPECT_EQ(LastTimings().recoveries(), 2);
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
