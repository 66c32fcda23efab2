#include "decode_service/decode_scheduler.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/seeded_random_source.h"
#include "gtest/gtest.h"
#include "tests/support/leg_requests.h"
#include "tests/support/scripted_engine.h"

namespace baton {
namespace {

using Actions = DecodeScheduler::Actions;

constexpr absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Time kNever = absl::InfiniteFuture();

// A scheduler over a scripted engine. The test is the loop, and the prefill worker too.
class DecodeSchedulerTest : public testing::Test {
 protected:
  explicit DecodeSchedulerTest(const DecodeSchedulerOptions& options = {.chunk_tokens = 64},
                               const ScriptedEngine::Options& engine = kEngine)
      : engine_(engine), scheduler_(Named(options), &engine_.info(), &engine_.kv(), &random_) {}
  ~DecodeSchedulerTest() override {
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
  }

  static DecodeSchedulerOptions Named(DecodeSchedulerOptions options) {
    options.instance_id = "decode-1";
    options.advertise = "decode:1";
    options.transports = {"grpc"};
    return options;
  }

  // What the actions did: events by leg, ends by leg, landings as the transfer side would hold them.
  struct Leg {
    std::vector<TokenId> tokens;
    std::vector<v1::DecodeEvent> others;
    v1::Tokens first_decoded;  // the message that carries the decode queue
    v1::Tokens first;
    std::optional<absl::Status> closed;
  };
  void Perform(Actions actions) {
    for (DecodeScheduler::Action& action : actions) {
      if (auto* send = std::get_if<DecodeScheduler::SendEvent>(&action)) {
        Leg& leg = legs_[send->leg];
        EXPECT_FALSE(leg.closed.has_value());
        if (!send->event.has_tokens()) {
          leg.others.push_back(send->event);
          continue;
        }
        EXPECT_EQ(send->event.tokens().index(), leg.tokens.size() + replayed_[send->leg]);
        for (const v1::LegToken& token : send->event.tokens().tokens()) leg.tokens.push_back(token.id());
        if (send->event.tokens().has_decode_queue_ms()) leg.first_decoded = send->event.tokens();
        if (send->event.tokens().index() == 0) leg.first = send->event.tokens();
      } else if (auto* close = std::get_if<DecodeScheduler::CloseLeg>(&action)) {
        EXPECT_FALSE(legs_[close->leg].closed.has_value());
        legs_[close->leg].closed = close->status;
      } else if (auto* start = std::get_if<DecodeScheduler::StartLanding>(&action)) {
        landings_[start->spec.transfer_id] = std::move(start->spec);
      } else if (auto* preempted = std::get_if<DecodeScheduler::Preempted>(&action)) {
        EXPECT_EQ(++preemptions_[preempted->request_id], preempted->nth);
        dropped_tokens_ += preempted->tokens;
      } else if (auto* resumed = std::get_if<DecodeScheduler::Resumed>(&action)) {
        recomputed_tokens_ += resumed->tokens;
      } else {
        EXPECT_EQ(landings_.erase(std::get<DecodeScheduler::DropLanding>(action).transfer_id), 1);
      }
    }
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
  }
  void Begin(LegId leg, const v1::DecodeRequest& request, absl::Time deadline = kNever) {
    replayed_[leg] = static_cast<size_t>(request.request().output_size());
    Perform(scheduler_.OnRequest(leg, request, now_, deadline, now_));
  }
  // The KV of `prompt` arrives, as a prefill worker's engine would have written it, with its first token.
  void Land(uint8_t transfer, const std::vector<TokenId>& prompt, bool with_token = true) {
    const TransferId id = Transfer(transfer);
    LandingSpec spec = std::move(landings_.at(id));
    landings_.erase(id);
    SequenceStep step;
    step.kv = &spec.kv;
    for (uint32_t begin = 0; begin < prompt.size(); begin += 64) {
      step.tokens = absl::MakeConstSpan(prompt).subspan(begin, 64);
      step.position = begin;
      engine_.Execute({{step}}, nullptr);
    }
    landing::Landed landed{id, std::move(spec.kv), {}, 1000, "grpc"};
    if (with_token) landed.commit.mutable_first_token()->set_id(Answer(prompt, 1).front());
    landed.commit.set_prefill_queue_ms(2);
    landed.commit.set_prefill_compute_ms(5);
    Perform(scheduler_.OnLanded(std::move(landed), now_));
  }
  // Runs one step, if there is one; `during` is called while it runs.
  bool Step(const std::function<void()>& during = [] {}) {
    Actions actions;
    const std::optional<StepPlan> plan = scheduler_.StartStep(now_, actions);
    Perform(std::move(actions));
    if (!plan) return false;
    rows_.push_back(plan->rows());
    const StepResult result = engine_.Execute(*plan, nullptr);
    during();
    now_ += absl::Milliseconds(10);
    Perform(scheduler_.OnStepDone(result, now_));
    return true;
  }
  void StepAll() {
    while (Step()) {
    }
  }
  static TransferId Transfer(uint8_t number) {
    return *TransferId::FromBytes(MakeAttempt(number).transfer_id());
  }
  static std::vector<TokenId> Answer(const std::vector<TokenId>& prompt, uint32_t tokens) {
    return ScriptedEngine::ExpectedAnswer(kEngine, prompt, tokens);
  }
  void ExpectIdle() {
    EXPECT_EQ(scheduler_.open_legs(), 0);
    EXPECT_TRUE(landings_.empty());
    EXPECT_TRUE(engine_.kv().CheckAllFree().ok()) << engine_.kv().CheckAllFree();
  }

  static constexpr ScriptedEngine::Options kEngine = {.kv_bytes = 1 << 19, .context_tokens = 512};
  ScriptedEngine engine_;
  SeededRandomSource random_{1};
  DecodeScheduler scheduler_;
  absl::Time now_ = kStart;
  std::map<LegId, Leg> legs_;
  std::map<LegId, size_t> replayed_;
  std::map<TransferId, LandingSpec> landings_;
  std::vector<uint32_t> rows_;                   // of each step
  std::map<std::string, uint32_t> preemptions_;  // by request
  uint32_t dropped_tokens_ = 0;
  uint32_t recomputed_tokens_ = 0;
};

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
  Begin(1, MakeHandoffRequest(1, LetterPrompt(100), 8, "p"), kStart + absl::Milliseconds(100));
  EXPECT_EQ(scheduler_.next_timer(), kStart + absl::Milliseconds(100));
  Perform(scheduler_.OnTimer(kStart + absl::Milliseconds(100)));
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

// Blocks for about one and a half of the longest sequences, taken in with few tokens ahead.
class CrowdedDecodeSchedulerTest : public DecodeSchedulerTest {
 protected:
  static constexpr ScriptedEngine::Options kSmall = {.kv_bytes = 96 << 10, .context_tokens = 256};
  explicit CrowdedDecodeSchedulerTest(uint32_t reserve_tokens = 8, uint32_t chunk_tokens = 64)
      : DecodeSchedulerTest({.chunk_tokens = chunk_tokens, .reserve_tokens = reserve_tokens}, kSmall) {}

  void ExpectAnswers(const std::map<LegId, std::pair<std::vector<TokenId>, uint32_t>>& requests) {
    for (const auto& [leg, request] : requests) {
      EXPECT_EQ(legs_[leg].tokens, Answer(request.first, request.second)) << leg;
      EXPECT_EQ(legs_[leg].closed, absl::OkStatus());
    }
    EXPECT_EQ(recomputed_tokens_, dropped_tokens_);
    ExpectIdle();
  }
};

TEST_F(CrowdedDecodeSchedulerTest, PreemptsTheLastOneAndNobodyNoticesButByThePause) {
  std::map<LegId, std::pair<std::vector<TokenId>, uint32_t>> requests;
  for (uint8_t i = 1; i <= 3; ++i) {
    requests[i] = {LetterPrompt(40, i), 120};
    Begin(i, MakeHandoffRequest(i, requests[i].first, 120, "p"));
    ASSERT_FALSE(legs_[i].closed) << *legs_[i].closed;
    Land(i, requests[i].first);
  }
  while (preemptions_.empty()) ASSERT_TRUE(Step());
  EXPECT_EQ(scheduler_.phase(3), "preempted");
  EXPECT_EQ(scheduler_.load().running, 2);
  EXPECT_EQ(scheduler_.load().waiting, 1);
  EXPECT_EQ(scheduler_.load().waiting_tokens, 40);
  // Those who wait go first.
  Begin(4, MakeHandoffRequest(4, LetterPrompt(10), 1, "p"));
  EXPECT_EQ(legs_[4].closed->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetRetryDelay(*legs_[4].closed).has_value());
  StepAll();
  EXPECT_FALSE(preemptions_.contains("request-1"));
  EXPECT_LE(preemptions_["request-3"], 5);  // log2(120 / 8) + 1
  ExpectAnswers(requests);
}

TEST_F(CrowdedDecodeSchedulerTest, ThePriorityDecidesWhoGivesWay) {
  std::map<LegId, std::pair<std::vector<TokenId>, uint32_t>> requests;
  for (uint8_t i = 1; i <= 3; ++i) {
    requests[i] = {LetterPrompt(40, i), 120};
    v1::DecodeRequest request = MakeLocalRequest(i, requests[i].first, 120);
    request.set_priority(i == 2 ? -1 : i == 3 ? 1 : 0);
    Begin(i, request);
  }
  StepAll();
  EXPECT_GE(preemptions_["request-2"], 1);
  EXPECT_FALSE(preemptions_.contains("request-3"));
  ExpectAnswers(requests);
}

class SlowPromptTest : public CrowdedDecodeSchedulerTest {
 protected:
  SlowPromptTest() : CrowdedDecodeSchedulerTest(8, /*chunk_tokens=*/2) {}
};

TEST_F(SlowPromptTest, APromptThatIsPreemptedReportsItsLogprobsOnce) {
  std::map<LegId, std::pair<std::vector<TokenId>, uint32_t>> requests;
  for (uint8_t i = 1; i <= 3; ++i) {
    requests[i] = {LetterPrompt(i < 3 ? 40 : 100, i), 100};
    v1::DecodeRequest request = MakeLocalRequest(i, requests[i].first, 100);
    request.mutable_request()->set_prompt_logprobs(0);
    Begin(i, request);
    ASSERT_FALSE(legs_[i].closed) << *legs_[i].closed;
  }
  while (preemptions_.empty()) ASSERT_TRUE(Step());
  EXPECT_EQ(scheduler_.phase(3), "preempted");
  EXPECT_TRUE(legs_[3].tokens.empty());
  StepAll();
  EXPECT_EQ(legs_[3].first.prompt_logprobs_size(), 99);
  ExpectAnswers(requests);
}

TEST_F(CrowdedDecodeSchedulerTest, APreemptedLegMayEndInEveryWay) {
  const auto preempt = [&] {
    legs_.clear();
    preemptions_.clear();
    for (uint8_t i = 1; i <= 3; ++i) {
      Begin(i, MakeLocalRequest(i, LetterPrompt(40, i), 120), i == 3 ? now_ + absl::Seconds(100) : kNever);
    }
    while (preemptions_.empty()) ASSERT_TRUE(Step());
    ASSERT_EQ(scheduler_.phase(3), "preempted");
  };
  preempt();
  Perform(scheduler_.OnLegClosed(3));
  StepAll();
  ExpectIdle();
  preempt();
  Perform(scheduler_.OnAbort("request-3"));
  EXPECT_EQ(legs_[3].closed->code(), absl::StatusCode::kAborted);
  StepAll();
  ExpectIdle();
  preempt();
  now_ += absl::Seconds(100);
  Perform(scheduler_.OnTimer(now_));
  EXPECT_EQ(legs_[3].closed->code(), absl::StatusCode::kDeadlineExceeded);
  StepAll();
  ExpectIdle();
  preempt();
  Perform(scheduler_.OnHandBack(now_));
  EXPECT_EQ(ErrorReason(*legs_[3].closed), kReasonDraining);
  ExpectIdle();
}

TEST_F(CrowdedDecodeSchedulerTest, ALandingGivesWayWhenNothingElseCan) {
  const std::vector<TokenId> prompt = LetterPrompt(40, 1);
  Begin(1, MakeLocalRequest(1, prompt, 200));
  for (uint8_t i = 2; i <= 6; ++i) Begin(i, MakeHandoffRequest(i, LetterPrompt(40, i), 120, "p"));
  const size_t landing = landings_.size();
  ASSERT_GE(landing, 1);
  for (int i = 0; i < 100; ++i) {
    Step();
    now_ += absl::Milliseconds(200);
  }
  EXPECT_LT(landings_.size(), landing);
  size_t refused = 0;
  for (LegId leg = 2; leg <= 6; ++leg) {
    if (!legs_[leg].closed) continue;
    ++refused;
    EXPECT_EQ(legs_[leg].closed->code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(GetRetryDelay(*legs_[leg].closed).has_value());
  }
  EXPECT_EQ(refused, 5 - landings_.size());
  EXPECT_TRUE(preemptions_.empty());
  for (LegId leg = 2; leg <= 6; ++leg) Perform(scheduler_.OnLegClosed(leg));
  StepAll();
  ExpectAnswers({{1, {prompt, 200}}});
}

// Any mix of prompts, lengths and priorities ends with the same answers, however few tokens are kept ahead.
class AnyCrowdTest : public CrowdedDecodeSchedulerTest, public testing::WithParamInterface<uint32_t> {
 protected:
  AnyCrowdTest() : CrowdedDecodeSchedulerTest(1 + GetParam() % 40) {}
};

TEST_P(AnyCrowdTest, EndsWithTheRightAnswersAndPreemptsInBounds) {
  SeededRandomSource random(GetParam());
  std::map<LegId, std::pair<std::vector<TokenId>, uint32_t>> requests;
  uint8_t next = 0;  // a refused one comes again as another
  for (int round = 0; round < 400; ++round) {
    if (requests.size() < 12 && random.Next() % 4 == 0) {
      ++next;
      const std::vector<TokenId> prompt = LetterPrompt(1 + random.Next() % 120, next);
      const uint32_t tokens = 1 + random.Next() % 130;
      const bool local = random.Next() % 2 == 0;
      v1::DecodeRequest request =
          local ? MakeLocalRequest(next, prompt, tokens) : MakeHandoffRequest(next, prompt, tokens, "p");
      request.set_priority(static_cast<int32_t>(random.Next() % 3));
      Begin(next, request);
      if (!legs_[next].closed) requests[next] = {prompt, tokens};
    }
    for (const auto& [leg, request] : requests) {
      if (landings_.contains(Transfer(leg)) && random.Next() % 8 == 0) Land(leg, request.first);
    }
    Step();
    now_ += absl::Milliseconds(200);
  }
  for (const auto& [leg, request] : requests) {
    if (landings_.contains(Transfer(leg))) Land(leg, request.first);
    StepAll();
  }
  // A landing may have given way.
  std::erase_if(requests, [&](const auto& each) {
    return absl::IsResourceExhausted(legs_[each.first].closed.value_or(absl::OkStatus()));
  });
  EXPECT_GE(requests.size(), 3);
  for (const auto& [request, preemptions] : preemptions_) EXPECT_LE(preemptions, 9) << request;
  ExpectAnswers(requests);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyCrowdTest, testing::Range(0u, 60u));

}  // namespace
}  // namespace baton
