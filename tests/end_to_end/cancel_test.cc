#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/error_details.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/worker_pair.h"
#include "tests/support/gated_engine.h"
#include "tests/support/leg_requests.h"
#include "tests/support/scripted_engine.h"

namespace baton {
namespace {

constexpr ScriptedEngine::Options kEngine = {.context_tokens = 512};

// Requests that end early, at each phase of a handoff, and workers that go away.
class CancelTest : public testing::TestWithParam<std::string> {
 protected:
  ~CancelTest() override {
    prefill_gate_.Open();
    decode_gate_.Open();
    pair_.reset();
    EXPECT_TRUE(prefill_engine_.kv().CheckAllFree().ok()) << prefill_engine_.kv().CheckAllFree();
    EXPECT_TRUE(decode_engine_.kv().CheckAllFree().ok()) << decode_engine_.kv().CheckAllFree();
  }
  static v1::TokenRequest Request(uint32_t prompt_tokens, uint32_t max_tokens = 20) {
    return MakeTokenRequest(LetterPrompt(prompt_tokens), max_tokens);
  }
  void ExpectBothIdleAndServing() {
    EXPECT_TRUE(pair_->prefill().AwaitIdle());
    EXPECT_TRUE(pair_->decode().AwaitIdle());
    const WorkerPair::Answer answer = pair_->Disaggregated(Request(100));
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.tokens, ScriptedEngine::ExpectedAnswer(kEngine, LetterPrompt(100), 20));
    EXPECT_GT(answer.kv_bytes, 0);
  }

  ScriptedEngine prefill_engine_{kEngine};
  ScriptedEngine decode_engine_{kEngine};
  GatedEngine prefill_gate_{&prefill_engine_};
  GatedEngine decode_gate_{&decode_engine_};
  std::unique_ptr<WorkerPair> pair_ = std::make_unique<WorkerPair>(
      &prefill_gate_, &decode_gate_, GetParam(), PrefillSchedulerOptions{.chunk_tokens = 64},
      DecodeSchedulerOptions{.chunk_tokens = 64});
};

TEST_P(CancelTest, WhileThePromptIsComputed) {
  prefill_gate_.Close();
  WorkerPair::Legs legs = pair_->Open(Request(300), "r");
  prefill_gate_.AwaitStep();
  legs.decode->Cancel();
  legs.prefill->Cancel();
  EXPECT_EQ(legs.prefill->Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(pair_->decode().AwaitIdle());
  prefill_gate_.Open();
  ExpectBothIdleAndServing();
}

TEST_P(CancelTest, BetweenTheFirstTokenAndTheSecond) {
  decode_gate_.Close();
  WorkerPair::Legs legs = pair_->Open(Request(100), "r");
  EXPECT_TRUE(legs.prefill->Next()->has_first_token());
  decode_gate_.AwaitStep();
  legs.decode->Cancel();
  legs.prefill->Cancel();
  EXPECT_EQ(legs.decode->Finish().code(), absl::StatusCode::kCancelled);
  decode_gate_.Open();
  ExpectBothIdleAndServing();
}

TEST_P(CancelTest, WhileTokensAreProduced) {
  WorkerPair::Legs legs = pair_->Open(Request(100, 400), "r");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(legs.decode->Next().has_value());
  legs.decode->Cancel();
  EXPECT_EQ(legs.decode->Finish().code(), absl::StatusCode::kCancelled);
  ExpectBothIdleAndServing();
}

TEST_P(CancelTest, OneLegAloneEndsTheOtherSideToo) {
  // The decode leg is gone while the prompt is computed: the prefill leg cannot land its KV and says so.
  prefill_gate_.Close();
  WorkerPair::Legs legs = pair_->Open(Request(300), "r");
  prefill_gate_.AwaitStep();
  legs.decode->Cancel();
  EXPECT_TRUE(pair_->decode().AwaitIdle());
  prefill_gate_.Open();
  const absl::Status status = legs.prefill->Finish();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ErrorReason(status), "HANDOFF_FAILED");
  ExpectBothIdleAndServing();
}

TEST_P(CancelTest, AbortEndsTheLegsOfOneRequest) {
  prefill_gate_.Close();
  WorkerPair::Legs legs = pair_->Open(Request(300), "doomed");
  prefill_gate_.AwaitStep();
  EXPECT_TRUE(pair_->decode().Abort("doomed"));
  EXPECT_EQ(legs.decode->Finish().code(), absl::StatusCode::kAborted);
  prefill_gate_.Open();
  EXPECT_FALSE(legs.prefill->Finish().ok());
  ExpectBothIdleAndServing();
}

TEST_P(CancelTest, APrefillWorkerThatStopsEndsItsLegs) {
  prefill_gate_.Close();
  WorkerPair::Legs legs = pair_->Open(Request(300), "r");
  prefill_gate_.AwaitStep();
  std::thread stopping([&] { pair_->StopPrefill(); });
  EXPECT_FALSE(legs.prefill->Finish().ok());  // its call is cancelled while the step still runs
  prefill_gate_.Open();
  stopping.join();
  legs.decode->Cancel();  // as a router does that has lost the other leg
  EXPECT_FALSE(legs.decode->Finish().ok());
  EXPECT_TRUE(pair_->decode().AwaitIdle());
}

INSTANTIATE_TEST_SUITE_P(Transports, CancelTest, testing::Values("grpc", "inproc"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace baton
