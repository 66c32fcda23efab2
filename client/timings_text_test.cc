#include "client/timings_text.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(TimingsText, ShowsTheSumsAndThePath) {
  v1::GenerateStreamResponse last;
  v1::Timings& t = *last.mutable_timings();
  t.set_ttft_ms(41.5);
  t.set_tokenize_ms(0.5);
  t.set_prefill_compute_ms(40);
  t.set_network_ms(1);
  t.set_lost_attempts_ms(0);
  t.set_tpot_ms(8);
  t.set_handoff_ms(0.25);
  t.set_first_step_ms(7.5);
  t.set_e2e_ms(500);
  t.set_path(v1::SERVING_PATH_DISAGGREGATED);
  t.set_kv_bytes(2.5e6);
  t.set_transport("grpc");
  last.mutable_usage()->set_prompt_tokens(12);
  last.mutable_usage()->set_completion_tokens(64);
  last.mutable_finish()->set_reason(v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(TimingsText(last),
            "TTFT    41.50 ms = tokenize 0.50 + prefill compute 40.00 + network 1.00\n"
            "TPOT     8.00 ms (125.0 tokens/s); the first gap = handoff 0.25 + first step 7.50\n"
            "E2E    500.00 ms; prefill and decode apart, 2.50 MB of KV handed off over grpc\n"
            "12 prompt tokens, 64 tokens in the answer, ended by its length\n");
}

TEST(TimingsText, LeavesOutWhatIsAbsent) {
  v1::GenerateStreamResponse last;
  EXPECT_EQ(TimingsText(last), "");
  last.mutable_timings()->set_ttft_ms(1);
  EXPECT_EQ(TimingsText(last), "TTFT     1.00 ms\n");
}

}  // namespace
}  // namespace baton
