#include "decode_service/decode_scheduler_test.h"

#include "common/error_details.h"
#include "common/error_reasons.h"

namespace baton {
namespace {

TEST_F(DecodeSchedulerTest, AHandoffGoesFromReservationToTheLastToken) {
  const std::vector<TokenId> prompt = LetterPrompt(90);
  Begin(1, MakeHandoffRequest(1, prompt, 8, "prefill-1"));
  ASSERT_EQ(legs_[1].others.size(), 1);
  const v1::Landing& landing = legs_[1].others[0].reserved().landing();
  EXPECT_EQ(landing.instance_id(), "decode-1");
  EXPECT_EQ(landing.address(), "decode:1");
  ASSERT_EQ(landing.wanted_size(), 2);
  EXPECT_EQ(landing.wanted(0).token_end(), 90);
  EXPECT_EQ(landing.wanted(1).token_begin(), 90 - 47);
  EXPECT_EQ(landings_.at(Transfer(1)).prefill_instance_id, "prefill-1");
  EXPECT_EQ(scheduler_.phase(1), "landing");
  EXPECT_FALSE(Step());

  Land(1, prompt);
  EXPECT_EQ(scheduler_.phase(1), "decoding");
  ASSERT_EQ(legs_[1].others.size(), 2);
  EXPECT_EQ(legs_[1].others[1].landed().kv_bytes(), 1000);
  EXPECT_EQ(legs_[1].others[1].landed().prefill_queue_ms(), 2);
  EXPECT_EQ(legs_[1].others[1].landed().prefill_compute_ms(), 5);
  EXPECT_EQ(legs_[1].tokens, Answer(prompt, 1));
  now_ += absl::Milliseconds(4);
  StepAll();
  EXPECT_EQ(legs_[1].tokens, Answer(prompt, 8));
  EXPECT_EQ(rows_, std::vector<uint32_t>(7, 1));
  EXPECT_EQ(legs_[1].first_decoded.index(), 1);
  EXPECT_EQ(legs_[1].first_decoded.decode_queue_ms(), 4);
  EXPECT_EQ(legs_[1].first_decoded.step_ms(), 10);
  EXPECT_EQ(legs_[1].others.back().done().finish(), v1::LEG_FINISH_LENGTH);
  EXPECT_EQ(legs_[1].closed, absl::OkStatus());
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, ALocalPrefillGivesTheSameTokens) {
  const std::vector<TokenId> prompt = LetterPrompt(150);
  Begin(1, MakeLocalRequest(1, prompt, 5));
  EXPECT_FALSE(legs_[1].others[0].reserved().has_landing());
  EXPECT_EQ(scheduler_.phase(1), "prefilling");
  StepAll();
  EXPECT_EQ(legs_[1].tokens, Answer(prompt, 5));
  EXPECT_EQ(rows_, (std::vector<uint32_t>{64, 64, 22, 1, 1, 1, 1}));
  EXPECT_EQ(legs_[1].first.prefill_queue_ms(), 0);
  EXPECT_EQ(legs_[1].first.prefill_compute_ms(), 30);
  EXPECT_FALSE(legs_[1].first.has_decode_queue_ms());
  EXPECT_EQ(legs_[1].first_decoded.index(), 1);
  EXPECT_EQ(legs_[1].first_decoded.decode_queue_ms(), 0);
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, AReplayTakesFewStepsAndSamplesOnlyWhatIsMissing) {
  const std::vector<TokenId> prompt = LetterPrompt(40), answer = Answer(prompt, 60);
  v1::DecodeRequest request = MakeHandoffRequest(1, prompt, 60, "prefill-1");
  request.mutable_request()->mutable_output()->Assign(answer.begin(), answer.begin() + 50);
  Begin(1, request);
  Land(1, prompt, /*with_token=*/false);
  StepAll();
  EXPECT_EQ(legs_[1].tokens, std::vector<TokenId>(answer.begin() + 50, answer.end()));
  EXPECT_EQ(rows_.front(), 50);
  EXPECT_EQ(legs_[1].closed, absl::OkStatus());
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, ALocalReplayReportsNoPrefillAsDecodeQueue) {
  const std::vector<TokenId> prompt = LetterPrompt(100), answer = Answer(prompt, 10);
  v1::DecodeRequest request = MakeLocalRequest(1, prompt, 10);
  request.mutable_request()->mutable_output()->Assign(answer.begin(), answer.begin() + 5);
  Begin(1, request);
  StepAll();
  EXPECT_EQ(legs_[1].tokens, std::vector<TokenId>(answer.begin() + 5, answer.end()));
  EXPECT_EQ(legs_[1].first_decoded.decode_queue_ms(), 0);
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, ALandedSequenceJoinsTheRunningBatch) {
  const std::vector<TokenId> first = LetterPrompt(30, 1), second = LetterPrompt(50, 2),
                             third = LetterPrompt(200, 3);
  Begin(1, MakeHandoffRequest(1, first, 20, "p"));
  Begin(2, MakeHandoffRequest(2, second, 20, "p"));
  Land(1, first);
  for (int i = 0; i < 3; ++i) Step();
  Land(2, second);
  Begin(3, MakeLocalRequest(3, third, 3));
  Step();
  EXPECT_EQ(rows_, (std::vector<uint32_t>{1, 1, 1, 2 + 64}));
  StepAll();
  EXPECT_EQ(legs_[1].tokens, Answer(first, 20));
  EXPECT_EQ(legs_[2].tokens, Answer(second, 20));
  EXPECT_EQ(legs_[3].tokens, Answer(third, 3));
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, AStopTokenEndsTheAnswerWhereverItWasSampled) {
  const std::vector<TokenId> prompt = LetterPrompt(30), answer = Answer(prompt, 12);
  for (const int at : {0, 6}) {
    v1::DecodeRequest request = MakeHandoffRequest(1, prompt, 12, "p");
    request.mutable_request()->add_stop_token_ids(answer[at]);
    const auto end = std::find(answer.begin(), answer.end(), answer[at]) + 1;
    legs_.clear();
    Begin(1, request);
    Land(1, prompt);
    StepAll();
    EXPECT_EQ(legs_[1].tokens, std::vector<TokenId>(answer.begin(), end));
    EXPECT_EQ(legs_[1].others.back().done().finish(), v1::LEG_FINISH_STOP);
    ExpectIdle();
  }
}

TEST_F(DecodeSchedulerTest, OneTokenAtMostIsOneToken) {
  const std::vector<TokenId> prompt = LetterPrompt(30);
  Begin(1, MakeHandoffRequest(1, prompt, 1, "p"));
  Land(1, prompt);
  EXPECT_EQ(legs_[1].tokens, Answer(prompt, 1));
  EXPECT_EQ(legs_[1].closed, absl::OkStatus());
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, AClosedLegFreesItsBlocksInEveryState) {
  const std::vector<TokenId> prompt = LetterPrompt(100);
  Begin(1, MakeHandoffRequest(1, prompt, 8, "p"));
  Perform(scheduler_.OnLegClosed(1));  // landing
  ExpectIdle();

  Begin(2, MakeHandoffRequest(2, prompt, 8, "p"));
  Land(2, prompt);
  Perform(scheduler_.OnLegClosed(2));  // landed, before its first step
  ExpectIdle();

  Begin(3, MakeLocalRequest(3, prompt, 8));
  Step([&] { Perform(scheduler_.OnLegClosed(3)); });  // in the middle of a step
  ExpectIdle();

  Begin(4, MakeHandoffRequest(4, prompt, 8, "p"));
  Land(4, prompt);
  Step();
  Perform(scheduler_.OnLegClosed(4));  // between two steps
  ExpectIdle();
  EXPECT_TRUE(scheduler_.OnLegClosed(4).empty());
}

TEST_F(DecodeSchedulerTest, KvThatLandsForALegThatIsGoneIsGivenBack) {
  const std::vector<TokenId> prompt = LetterPrompt(100);
  Begin(1, MakeHandoffRequest(1, prompt, 8, "p"));
  LandingSpec spec = std::move(landings_.at(Transfer(1)));
  Perform(scheduler_.OnLegClosed(1));
  Perform(scheduler_.OnLanded({Transfer(1), std::move(spec.kv), {}, 0, "grpc"}, now_));
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, AFailedLandingEndsTheLegAndNamesThePeer) {
  Begin(1, MakeHandoffRequest(1, LetterPrompt(100), 8, "prefill-1"));
  landings_.clear();
  Perform(scheduler_.OnLandingFailed({Transfer(1), absl::DataLossError("checksum"), "prefill-1"}));
  EXPECT_EQ(legs_[1].closed->code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ErrorReason(*legs_[1].closed), "HANDOFF_FAILED");
  EXPECT_EQ(GetErrorInfo(*legs_[1].closed)->metadata.at("peer"), "prefill-1");
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, AFirstTokenThatDoesNotFitIsRefused) {
  const std::vector<TokenId> prompt = LetterPrompt(30);
  Begin(1, MakeHandoffRequest(1, prompt, 8, "p"));
  Land(1, prompt, /*with_token=*/false);
  EXPECT_EQ(legs_[1].closed->code(), absl::StatusCode::kInternal);
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, ADeadlineEndsTheLeg) {
  Begin(1, MakeHandoffRequest(1, LetterPrompt(100), 8, "p"), now_ + absl::Milliseconds(100));
  EXPECT_EQ(scheduler_.next_timer(), now_ + absl::Milliseconds(100));
  Perform(scheduler_.OnTimer(now_ + absl::Milliseconds(100)));
  EXPECT_EQ(legs_[1].closed->code(), absl::StatusCode::kDeadlineExceeded);
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, EveryOpenLegHearsTheStepCount) {
  const std::vector<TokenId> prompt = LetterPrompt(30);
  Begin(1, MakeHandoffRequest(1, prompt, 8, "p"));
  Begin(2, MakeHandoffRequest(2, prompt, 8, "p"));
  Land(2, prompt);
  Step();
  for (int i = 0; i < 3; ++i) {
    const absl::Time due = scheduler_.next_timer();
    EXPECT_LE(due - now_, absl::Milliseconds(250));
    now_ = due;
    Perform(scheduler_.OnTimer(now_));
    EXPECT_EQ(legs_[1].others.back().progress().steps(), 1);
    EXPECT_EQ(legs_[2].others.back().progress().computed_tokens(), 31);
  }
}

TEST_F(DecodeSchedulerTest, AbortsByRequestId) {
  Begin(1, MakeHandoffRequest(1, LetterPrompt(30), 8, "p"));
  EXPECT_TRUE(scheduler_.OnAbort("").empty());
  Perform(scheduler_.OnAbort("request-1"));
  EXPECT_EQ(legs_[1].closed->code(), absl::StatusCode::kAborted);
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, AFullPoolRefusesAndTakesAgainWhenItHasRoom) {
  LegId leg = 0;
  do {
    ++leg;
    Begin(leg, MakeHandoffRequest(static_cast<uint8_t>(leg), LetterPrompt(400), 100, "p"));
    ASSERT_LT(leg, 60);
  } while (!legs_[leg].closed);
  EXPECT_GT(leg, 1);
  EXPECT_EQ(legs_[leg].closed->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetRetryDelay(*legs_[leg].closed).has_value());
  Perform(scheduler_.OnLegClosed(1));
  Begin(100, MakeHandoffRequest(100, LetterPrompt(400), 100, "p"));
  EXPECT_FALSE(legs_[100].closed.has_value());
}

TEST_F(DecodeSchedulerTest, ADrainHandsBackWhatRuns) {
  const std::vector<TokenId> prompt = LetterPrompt(100);
  Begin(1, MakeHandoffRequest(1, prompt, 8, "p"));
  Begin(2, MakeHandoffRequest(2, prompt, 8, "p"));
  Land(2, prompt);
  Step([&] { Perform(scheduler_.OnHandBack(now_)); });
  for (LegId leg : {1, 2}) {
    EXPECT_EQ(legs_[leg].closed->code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ErrorReason(*legs_[leg].closed), kReasonDraining);
  }
  ExpectIdle();
}

TEST_F(DecodeSchedulerTest, RefusesWhatItCannotServe) {
  const auto refusal = [&](const v1::DecodeRequest& request) {
    legs_.erase(9);
    Begin(9, request);
    return legs_[9].closed.value_or(absl::OkStatus()).code();
  };
  const v1::DecodeRequest good = MakeLocalRequest(1, LetterPrompt(10), 8);
  v1::DecodeRequest bad = good;
  bad.clear_source();
  EXPECT_EQ(refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_attempt()->clear_transfer_id();
  EXPECT_EQ(refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_request()->set_max_tokens(0);
  EXPECT_EQ(refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_request()->set_max_tokens(4294967295u);
  EXPECT_EQ(refusal(bad), absl::StatusCode::kInvalidArgument);
  Begin(1, good);
  EXPECT_EQ(refusal(good), absl::StatusCode::kAlreadyExists);
}

class SmallDecodeSchedulerTest : public DecodeSchedulerTest {
 protected:
  SmallDecodeSchedulerTest()
      : DecodeSchedulerTest(
            {.token_budget = 8, .chunk_tokens = 64, .min_chunk_tokens = 2, .max_running = 4}) {}
};

TEST_F(SmallDecodeSchedulerTest, ABudgetThatSlowStepsHaveCutStarvesNoSequence) {
  for (uint8_t i = 1; i <= 4; ++i) {
    Begin(i, MakeHandoffRequest(i, LetterPrompt(10, i), 40, "p"));
    Land(i, LetterPrompt(10, i));
  }
  now_ += absl::Milliseconds(1);
  for (int i = 0; i < 6; ++i) Step([&] { now_ += absl::Seconds(2); });
  EXPECT_EQ(rows_, std::vector<uint32_t>(6, 4));
  for (LegId i = 1; i <= 4; ++i) EXPECT_EQ(legs_[i].tokens.size(), 7);
}

TEST_F(SmallDecodeSchedulerTest, AFullBatchRefusesWithATimeToRetry) {
  for (uint8_t i = 1; i <= 5; ++i) Begin(i, MakeHandoffRequest(i, LetterPrompt(10, i), 4, "p"));
  EXPECT_FALSE(legs_[4].closed.has_value());
  EXPECT_EQ(legs_[5].closed->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetRetryDelay(*legs_[5].closed).has_value());
  EXPECT_EQ(scheduler_.load().waiting, 4);
}

}  // namespace
}  // namespace baton
