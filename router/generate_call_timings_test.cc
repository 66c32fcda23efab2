#include "gtest/gtest.h"
#include "router/generate_call_test.h"

namespace baton {
namespace {

// The parts of the timings, from workers whose figures are given.
class GenerateCallTimingsTest : public GenerateCallTest {
 protected:
  void Pass(double ms) { now += absl::Milliseconds(ms); }
  void ReserveAfter(double ms, uint32_t attempt = 0) {
    Assign();
    Pass(ms);
    v1::DecodeEvent event;
    event.mutable_reserved()->mutable_landing();
    event.mutable_reserved()->set_reserve_ms(1);
    Call().OnDecodeEvent(attempt, event, now, actions);
  }
  void Prefilled(uint32_t attempt = 0) {
    v1::PrefillEvent event;
    event.mutable_first_token()->mutable_token()->set_id('x');
    event.mutable_first_token()->set_queue_ms(2);
    event.mutable_first_token()->set_compute_ms(10);
    Call().OnPrefillEvent(attempt, event, now, actions);
  }
  // Token 1 and the end of the answer.
  void Stepped(uint32_t attempt = 0) {
    v1::DecodeEvent event;
    event.mutable_tokens()->set_index(1);
    event.mutable_tokens()->add_tokens()->set_id(ByteTokenizer::kEnd);
    event.mutable_tokens()->set_decode_queue_ms(3);
    event.mutable_tokens()->set_step_ms(4);
    Call().OnDecodeEvent(attempt, event, now, actions);
  }
  // An attempt from its pair to the end of the answer, with nothing lost: token 0 after 17 ms, the next 14
  // later.
  void AttemptToTheEnd(uint32_t attempt = 0) {
    ReserveAfter(2, attempt);
    Pass(15);
    Prefilled(attempt);
    Pass(6);
    Landed(attempt);
    Pass(8);
    Stepped(attempt);
  }
  v1::Timings Timings(double ttft, double gap) const {
    const v1::Timings t = LastTimings();
    EXPECT_NEAR(t.ttft_ms(), ttft, 1e-9);
    EXPECT_NEAR(t.tokenize_ms() + t.router_queue_ms() + t.lost_attempts_ms() + t.reservation_ms() +
                    t.prefill_queue_ms() + t.prefill_compute_ms() + t.network_ms(),
                ttft, 1e-9);
    EXPECT_NEAR(t.first_gap_lost_ms() + t.handoff_ms() + t.decode_queue_ms() + t.first_step_ms() +
                    t.first_gap_network_ms(),
                gap, 1e-9);
    EXPECT_NEAR(t.tpot_ms(), gap, 1e-9);
    return t;
  }
};

TEST_F(GenerateCallTimingsTest, TheHandoffIsThereThoughTheAnswerEndsBeforePrefillReportsIt) {
  Call();
  Pass(5);
  AttemptToTheEnd();
  const v1::Timings t = Timings(22, 14);
  EXPECT_EQ(t.router_queue_ms(), 5);
  EXPECT_EQ(t.reservation_ms(), 1);
  EXPECT_EQ(t.prefill_queue_ms(), 2);
  EXPECT_EQ(t.prefill_compute_ms(), 10);
  EXPECT_EQ(t.network_ms(), 4);
  EXPECT_EQ(t.handoff_ms(), 6);
  EXPECT_EQ(t.decode_queue_ms(), 3);
  EXPECT_EQ(t.first_step_ms(), 4);
  EXPECT_EQ(t.first_gap_network_ms(), 1);
}

TEST_F(GenerateCallTimingsTest, TheHandoffIsWhatPrefillMeasuredIfItSaysSoInTime) {
  ReserveAfter(2);
  Pass(15);
  Prefilled();
  Pass(6);
  Landed();
  v1::PrefillEvent done;
  done.mutable_done()->set_handoff_ms(5.5);
  Call().OnPrefillEvent(0, done, now, actions);
  Pass(8);
  Stepped();
  EXPECT_EQ(Timings(17, 14).handoff_ms(), 5.5);
}

TEST_F(GenerateCallTimingsTest, Token0MayComeFromDecodeBeforePrefillsWord) {
  ReserveAfter(2);
  Pass(18);
  Landed();
  Tokens(0, {'x'});
  Pass(1);
  Prefilled();
  Pass(7);
  Stepped();
  const v1::Timings t = Timings(20, 8);
  EXPECT_EQ(t.prefill_queue_ms(), 2);
  EXPECT_EQ(t.prefill_compute_ms(), 10);
  EXPECT_EQ(t.handoff_ms(), 0);  // token 0 waited for it, not what came after
}

TEST_F(GenerateCallTimingsTest, ALossBetweenTheFirstTwoTokensHasItsPart) {
  ReserveAfter(2);
  Pass(15);
  Prefilled();
  Pass(100);
  Closed(Leg::kDecode, kLost);
  Pass(10);
  AttemptToTheEnd(1);
  const v1::Timings t = Timings(17, 141);
  EXPECT_EQ(t.lost_attempts_ms(), 0);
  EXPECT_EQ(t.first_gap_lost_ms(), 133);
  EXPECT_FALSE(t.has_handoff_ms());
  EXPECT_EQ(t.first_gap_network_ms(), 1);
}

TEST_F(GenerateCallTimingsTest, ALossBeforeTheFirstTokenIsOutsideTheOtherParts) {
  ReserveAfter(2);
  Pass(100);
  Closed(Leg::kPrefill, kLost);
  Pass(10);
  AttemptToTheEnd(1);
  const v1::Timings t = Timings(129, 14);
  EXPECT_EQ(t.lost_attempts_ms(), 102);
  EXPECT_EQ(t.router_queue_ms(), 10);
  EXPECT_EQ(t.reservation_ms(), 1);
  EXPECT_EQ(t.network_ms(), 4);
}

TEST_F(GenerateCallTimingsTest, PartsThatWereHeardLateAndInABunchAreCut) {
  ReserveAfter(2);
  Pass(15);
  Prefilled();
  Pass(5);
  Landed();
  Stepped();
  const v1::Timings t = Timings(17, 5);
  EXPECT_EQ(t.decode_queue_ms(), 3);
  EXPECT_EQ(t.first_step_ms(), 2);
  EXPECT_EQ(t.handoff_ms(), 0);
}

}  // namespace
}  // namespace baton
