// Preemption: what happens where not all that runs has room.
#include <algorithm>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "decode_service/decode_scheduler_test.h"

namespace baton {
namespace {

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
      Begin(i, MakeLocalRequest(i, LetterPrompt(40, i), 120),
            i == 3 ? now_ + absl::Seconds(100) : absl::InfiniteFuture());
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
