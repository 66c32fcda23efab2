#include "prefill_service/prefill_scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "gtest/gtest.h"
#include "tests/support/leg_requests.h"
#include "tests/support/scripted_engine.h"

namespace baton {
namespace {

using Actions = PrefillScheduler::Actions;

constexpr absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Time kNever = absl::InfiniteFuture();

// The actions of one kind, in order.
template <typename T>
std::vector<const T*> All(const Actions& actions) {
  std::vector<const T*> all;
  for (const PrefillScheduler::Action& action : actions) {
    if (const T* each = std::get_if<T>(&action)) all.push_back(each);
  }
  return all;
}

std::vector<const v1::FirstToken*> FirstTokens(const Actions& actions) {
  std::vector<const v1::FirstToken*> tokens;
  for (const auto* send : All<PrefillScheduler::SendEvent>(actions)) {
    if (send->event.has_first_token()) tokens.push_back(&send->event.first_token());
  }
  return tokens;
}

// A scheduler over a scripted engine; the test is the loop.
class PrefillSchedulerTest : public testing::Test {
 protected:
  explicit PrefillSchedulerTest(const PrefillSchedulerOptions& options = {.chunk_tokens = 64})
      : scheduler_(options, &engine_.info(), &engine_.kv()) {}
  ~PrefillSchedulerTest() override {
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
  }

  Actions Begin(LegId leg, const v1::PrefillRequest& request, absl::Time deadline = kNever) {
    return scheduler_.OnRequest(leg, request, now_, deadline, now_);
  }
  // Runs one step, if there is one; `during` is called while it runs.
  Actions Step(const std::function<Actions()>& during = [] { return Actions(); }) {
    Actions all;
    const auto append = [&all](Actions more) {
      std::move(more.begin(), more.end(), std::back_inserter(all));
    };
    const std::optional<StepPlan> plan = scheduler_.StartStep(now_, all);
    if (!plan) return all;
    const StepResult result =
        engine_.Execute(*plan, [&](LayerRange layers) { append(scheduler_.OnLayersDone(layers)); });
    append(during());
    now_ += absl::Milliseconds(10);
    append(scheduler_.OnStepDone(result, now_));
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
    return all;
  }
  // Steps until there is nothing to compute.
  Actions StepAll() {
    Actions all;
    for (uint64_t steps = scheduler_.load().steps;; steps = scheduler_.load().steps) {
      Actions more = Step();
      std::move(more.begin(), more.end(), std::back_inserter(all));
      if (scheduler_.load().steps == steps) return all;
    }
  }
  static TransferId Transfer(uint8_t number) {
    return *TransferId::FromBytes(MakeAttempt(number).transfer_id());
  }
  TokenId Expected(const std::vector<TokenId>& prompt) {
    return ScriptedEngine::ExpectedAnswer(kEngine, prompt, 1).front();
  }
  void ExpectIdle() {
    EXPECT_EQ(scheduler_.open_legs(), 0);
    EXPECT_TRUE(engine_.kv().CheckAllFree().ok()) << engine_.kv().CheckAllFree();
  }

  static constexpr ScriptedEngine::Options kEngine = {.kv_bytes = 1 << 18, .context_tokens = 512};
  ScriptedEngine engine_{kEngine};
  PrefillScheduler scheduler_;
  absl::Time now_ = kStart;
};

TEST_F(PrefillSchedulerTest, APromptGoesFromItsRequestToItsLastByte) {
  const std::vector<TokenId> prompt = LetterPrompt(150);
  EXPECT_TRUE(Begin(1, MakePrefillRequest(1, prompt)).empty());
  EXPECT_EQ(scheduler_.phase(1), "queued");
  {
    const Actions actions = StepAll();
    ASSERT_EQ(All<PrefillScheduler::StartHandoff>(actions).size(), 1);
    EXPECT_EQ(All<PrefillScheduler::StartHandoff>(actions)[0]->spec.prompt_tokens, 150);
    // Every layer range of every chunk, each token once and in order.
    uint32_t done[2] = {0, 0};
    for (const auto* computed : All<PrefillScheduler::HandoffComputed>(actions)) {
      uint32_t& tokens = done[computed->layers.begin / 2];
      EXPECT_EQ(computed->tokens.begin, tokens);
      EXPECT_LE(computed->tokens.size(), 64);
      tokens = computed->tokens.end;
    }
    EXPECT_EQ(done[0], 150);
    EXPECT_EQ(done[1], 150);
    ASSERT_EQ(FirstTokens(actions).size(), 1);
    EXPECT_EQ(FirstTokens(actions)[0]->token().id(), Expected(prompt));
    EXPECT_FALSE(FirstTokens(actions)[0]->token().has_logprob());
    EXPECT_EQ(FirstTokens(actions)[0]->queue_ms(), 0);
    EXPECT_EQ(FirstTokens(actions)[0]->compute_ms(), 30);
    ASSERT_EQ(All<PrefillScheduler::HandoffPromptDone>(actions).size(), 1);
    EXPECT_EQ(All<PrefillScheduler::HandoffPromptDone>(actions)[0]->commit.first_token().id(),
              Expected(prompt));
    EXPECT_EQ(All<PrefillScheduler::HandoffPromptDone>(actions)[0]->commit.prefill_compute_ms(), 30);
    EXPECT_EQ(scheduler_.phase(1), "pushing");
  }
  const Actions actions =
      scheduler_.OnHandoffFinished({Transfer(1), absl::OkStatus(), 4096, absl::Milliseconds(3), "grpc"});
  ASSERT_EQ(actions.size(), 2);
  const v1::PrefillDone& done = std::get<PrefillScheduler::SendEvent>(actions[0]).event.done();
  EXPECT_EQ(done.handoff_ms(), 3);
  EXPECT_EQ(done.kv_bytes(), 4096);
  EXPECT_EQ(done.transport(), "grpc");
  EXPECT_TRUE(std::get<PrefillScheduler::CloseLeg>(actions[1]).status.ok());
  ExpectIdle();
}

TEST_F(PrefillSchedulerTest, LogprobsComeWhenAskedFor) {
  v1::PrefillRequest request = MakePrefillRequest(1, LetterPrompt(100));
  request.mutable_request()->set_logprobs(2);
  request.mutable_request()->set_prompt_logprobs(0);
  Begin(1, request);
  const Actions actions = StepAll();
  ASSERT_EQ(FirstTokens(actions).size(), 1);
  EXPECT_TRUE(FirstTokens(actions)[0]->token().has_logprob());
  EXPECT_EQ(FirstTokens(actions)[0]->token().top_size(), 2);
  // Each token but the first, across the chunks.
  ASSERT_EQ(FirstTokens(actions)[0]->prompt_logprobs_size(), 99);
  for (int i = 0; i < 99; ++i) {
    EXPECT_EQ(FirstTokens(actions)[0]->prompt_logprobs(i).id(), request.request().prompt(i + 1));
    EXPECT_EQ(FirstTokens(actions)[0]->prompt_logprobs(i).logprob(), -(i + 1.0f));
  }
}

TEST_F(PrefillSchedulerTest, ARequestWithOutputSamplesNothing) {
  v1::PrefillRequest request = MakePrefillRequest(1, LetterPrompt(20));
  request.mutable_request()->add_output('q');
  Begin(1, request);
  const Actions actions = StepAll();
  ASSERT_EQ(FirstTokens(actions).size(), 1);
  EXPECT_FALSE(FirstTokens(actions)[0]->has_token());
  ASSERT_EQ(All<PrefillScheduler::HandoffPromptDone>(actions).size(), 1);
  EXPECT_FALSE(All<PrefillScheduler::HandoffPromptDone>(actions)[0]->commit.has_first_token());
}

TEST_F(PrefillSchedulerTest, AShortPromptOvertakesALongOne) {
  const std::vector<TokenId> longer = LetterPrompt(400, 1), shorter = LetterPrompt(30, 2);
  Begin(1, MakePrefillRequest(1, longer));
  Begin(2, MakePrefillRequest(2, shorter));
  const Actions first = Step();
  ASSERT_EQ(FirstTokens(first).size(), 1);
  EXPECT_EQ(FirstTokens(first)[0]->token().id(), Expected(shorter));
  const Actions rest = StepAll();
  ASSERT_EQ(FirstTokens(rest).size(), 1);
  EXPECT_EQ(FirstTokens(rest)[0]->token().id(), Expected(longer));
}

TEST_F(PrefillSchedulerTest, WhatWarmingUpTookBoundsTheFirstStep) {
  scheduler_.OnWarmUp(32, absl::Milliseconds(160));  // 200 ms hold 40 tokens
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)));
  const Actions actions = Step();
  EXPECT_EQ(All<PrefillScheduler::HandoffComputed>(actions).front()->tokens.size(), 40);
}

TEST_F(PrefillSchedulerTest, AClosedLegFreesItsBlocksInEveryState) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)));
  EXPECT_TRUE(scheduler_.OnLegClosed(1).empty());  // queued
  ExpectIdle();

  Begin(2, MakePrefillRequest(2, LetterPrompt(100)));
  {
    const Actions step = Step([&] { return scheduler_.OnLegClosed(2); });  // in the middle of a step
    ASSERT_EQ(All<PrefillScheduler::CancelHandoff>(step).size(), 1);
    EXPECT_EQ(All<PrefillScheduler::CancelHandoff>(step)[0]->transfer_id, Transfer(2));
    EXPECT_TRUE(All<PrefillScheduler::CloseLeg>(step).empty());
  }
  ExpectIdle();

  Begin(3, MakePrefillRequest(3, LetterPrompt(100)));
  Step();  // between two chunks
  EXPECT_EQ(All<PrefillScheduler::CancelHandoff>(scheduler_.OnLegClosed(3)).size(), 1);
  ExpectIdle();

  Begin(4, MakePrefillRequest(4, LetterPrompt(100)));
  StepAll();  // pushing
  EXPECT_EQ(All<PrefillScheduler::CancelHandoff>(scheduler_.OnLegClosed(4)).size(), 1);
  ExpectIdle();
  EXPECT_TRUE(scheduler_.OnHandoffFinished({Transfer(4), absl::CancelledError("")}).empty());  // late
  EXPECT_TRUE(scheduler_.OnLegClosed(4).empty());
}

TEST_F(PrefillSchedulerTest, BlocksThatATransferReadsAreNotHandedOut) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)));
  Actions pinning = StepAll();
  scheduler_.OnLegClosed(1);
  EXPECT_GT(engine_.kv().counts()[BlockState::kDraining], 0);
  pinning.clear();
  ExpectIdle();
}

TEST_F(PrefillSchedulerTest, AFailedHandoffEndsTheLegAndNamesThePeer) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)));
  StepAll();
  const Actions actions = scheduler_.OnHandoffFinished({Transfer(1), absl::UnavailableError("lost")});
  ASSERT_EQ(actions.size(), 1);
  const absl::Status& status = std::get<PrefillScheduler::CloseLeg>(actions[0]).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(status), "HANDOFF_FAILED");
  EXPECT_EQ(GetErrorInfo(status)->metadata.at("peer"), "decode-1");
  ExpectIdle();
}

TEST_F(PrefillSchedulerTest, ADeadlineEndsTheLeg) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)), kStart + absl::Milliseconds(120));
  Step();
  EXPECT_EQ(scheduler_.next_timer(), kStart + absl::Milliseconds(120));
  const Actions actions = scheduler_.OnTimer(kStart + absl::Milliseconds(120));
  ASSERT_EQ(All<PrefillScheduler::CloseLeg>(actions).size(), 1);
  EXPECT_EQ(All<PrefillScheduler::CloseLeg>(actions)[0]->status.code(), absl::StatusCode::kDeadlineExceeded);
  ExpectIdle();
  EXPECT_EQ(scheduler_.next_timer(), kNever);
}

TEST_F(PrefillSchedulerTest, EveryOpenLegHearsTheStepCount) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)));
  StepAll();
  Begin(2, MakePrefillRequest(2, LetterPrompt(100, 2)));
  for (int i = 0; i < 3; ++i) {
    const absl::Time due = scheduler_.next_timer();
    // With the longest step behind it, still within 500 ms.
    EXPECT_LE(due - now_, absl::Milliseconds(250));
    now_ = due;
    const Actions actions = scheduler_.OnTimer(now_);
    ASSERT_EQ(actions.size(), 2);
    const v1::Progress& progress = std::get<PrefillScheduler::SendEvent>(actions[0]).event.progress();
    EXPECT_EQ(progress.steps(), 2);
    EXPECT_EQ(progress.computed_tokens(), 100);
  }
}

TEST_F(PrefillSchedulerTest, ADrainHandsBackPromptsButLetsAHandoffComplete) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(20)));
  Begin(2, MakePrefillRequest(2, LetterPrompt(20)));
  StepAll();
  Begin(3, MakePrefillRequest(3, LetterPrompt(20)));
  const auto ended = [](const Actions& actions) {
    std::vector<LegId> legs;
    for (const auto* close : All<PrefillScheduler::CloseLeg>(actions)) {
      EXPECT_EQ(close->status.code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(ErrorReason(close->status), kReasonDraining);
      legs.push_back(close->leg);
    }
    return legs;
  };
  EXPECT_EQ(ended(scheduler_.OnHandBack(now_)), std::vector<LegId>{3});
  const Actions done = scheduler_.OnHandoffFinished({Transfer(1), absl::OkStatus()});
  EXPECT_TRUE(All<PrefillScheduler::CloseLeg>(done).at(0)->status.ok());
  // The other one has half a second.
  EXPECT_TRUE(ended(scheduler_.OnTimer(now_ + absl::Milliseconds(499))).empty());
  EXPECT_LE(scheduler_.next_timer(), now_ + absl::Milliseconds(750));
  EXPECT_EQ(ended(scheduler_.OnTimer(now_ + absl::Milliseconds(500))), std::vector<LegId>{2});
  ExpectIdle();
}

TEST_F(PrefillSchedulerTest, AbortsByRequestId) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(100)));
  Begin(2, MakePrefillRequest(2, LetterPrompt(100)));
  EXPECT_TRUE(scheduler_.OnAbort("request-").empty());
  const Actions actions = scheduler_.OnAbort("request-1");
  ASSERT_EQ(All<PrefillScheduler::CloseLeg>(actions).size(), 1);
  EXPECT_EQ(All<PrefillScheduler::CloseLeg>(actions)[0]->leg, 1);
  EXPECT_EQ(All<PrefillScheduler::CloseLeg>(actions)[0]->status.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(scheduler_.OnAbort("request-1").empty());
  EXPECT_EQ(scheduler_.open_legs(), 1);
}

TEST_F(PrefillSchedulerTest, RefusesWhatItCannotServe) {
  const auto refusal = [&](const v1::PrefillRequest& request) {
    const Actions actions = Begin(9, request);
    EXPECT_EQ(actions.size(), 1);
    return actions.empty() ? absl::OkStatus() : std::get<PrefillScheduler::CloseLeg>(actions[0]).status;
  };
  const v1::PrefillRequest good = MakePrefillRequest(1, LetterPrompt(10));
  v1::PrefillRequest bad = good;
  bad.mutable_attempt()->set_transfer_id("short");
  EXPECT_EQ(refusal(bad).code(), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_request()->clear_prompt();
  EXPECT_EQ(refusal(bad).code(), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_request()->add_prompt(257);
  EXPECT_EQ(refusal(bad).code(), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_request()->set_max_tokens(503);
  EXPECT_EQ(refusal(bad).code(), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_request()->mutable_sampling()->set_top_p(1.5);
  EXPECT_EQ(refusal(bad).code(), absl::StatusCode::kInvalidArgument);
  Begin(1, good);
  EXPECT_EQ(refusal(good).code(), absl::StatusCode::kAlreadyExists);
}

class SmallPrefillSchedulerTest : public PrefillSchedulerTest {
 protected:
  SmallPrefillSchedulerTest()
      : PrefillSchedulerTest({.chunk_tokens = 64, .max_running = 1, .max_waiting = 2}) {}
};

TEST_F(SmallPrefillSchedulerTest, AFullQueueRefusesWithATimeToRetry) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(200)));
  Step();
  Begin(2, MakePrefillRequest(2, LetterPrompt(10)));
  Begin(3, MakePrefillRequest(3, LetterPrompt(10)));
  const Actions actions = Begin(4, MakePrefillRequest(4, LetterPrompt(10)));
  ASSERT_EQ(actions.size(), 1);
  const absl::Status& status = std::get<PrefillScheduler::CloseLeg>(actions[0]).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetRetryDelay(status).has_value());
  EXPECT_EQ(scheduler_.load().waiting, 2);
  EXPECT_EQ(scheduler_.load().running, 1);
  EXPECT_EQ(scheduler_.load().waiting_tokens, 200 - 64 + 20);
}

TEST_F(SmallPrefillSchedulerTest, TheNextPromptWaitsUntilTheFirstHasLeft) {
  Begin(1, MakePrefillRequest(1, LetterPrompt(30)));
  Begin(2, MakePrefillRequest(2, LetterPrompt(20)));
  EXPECT_EQ(FirstTokens(StepAll()).size(), 1);
  EXPECT_EQ(scheduler_.phase(2), "queued");
  now_ += absl::Milliseconds(40);
  scheduler_.OnHandoffFinished({Transfer(1), absl::OkStatus()});
  const Actions actions = StepAll();
  ASSERT_EQ(FirstTokens(actions).size(), 1);
  EXPECT_EQ(FirstTokens(actions)[0]->queue_ms(), 50);
}

}  // namespace
}  // namespace baton
