#include <string>
#include <vector>

#include "common/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/simulated_system.h"

namespace baton {
namespace {

CallSpec Spec(uint32_t prompt_tokens, uint32_t max_tokens, uint64_t salt = 0) {
  CallSpec spec;
  for (uint32_t i = 0; i < prompt_tokens; ++i)
    spec.prompt.push_back(static_cast<TokenId>((i * 7 + salt * 13) % 256));
  spec.max_tokens = max_tokens;
  spec.stop_ids = {ByteTokenizer::kEnd};
  return spec;
}

void ExpectWholeAnswer(const SimulatedSystem& system, CallId call, const CallSpec& spec) {
  const ClientAnswer& answer = system.answer(call);
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.tokens, system.Expected(spec, call));
  for (uint32_t i = 0; i < answer.indexes.size(); ++i) EXPECT_EQ(answer.indexes[i], i);
  EXPECT_EQ(answer.usage.prompt_tokens(), spec.prompt.size());
  EXPECT_EQ(answer.usage.completion_tokens(), answer.tokens.size());
}

absl::Time Soon(SimulatedSystem& system, double ms = 1000) {
  return system.world().now() + absl::Milliseconds(ms);
}

TEST(Simulation, OneRequestCrossesBothWorkers) {
  const SimulatedSystem::Options options;
  SimulatedSystem system(options);
  const CallSpec spec = Spec(100, 20);
  const CallId call = system.Submit(Soon(system), spec);
  ASSERT_TRUE(system.Run().ok());
  ExpectWholeAnswer(system, call, spec);
  EXPECT_EQ(system.answer(call).timings.path(), v1::SERVING_PATH_DISAGGREGATED);
  EXPECT_GT(system.bytes_landed(), 0);
  EXPECT_EQ(system.answer(call).timings.kv_bytes(), static_cast<double>(system.bytes_landed()));
  EXPECT_EQ(system.CheckQuiescent(), absl::OkStatus());
}

// Every part is the delay that was scripted: links of 2 ms, steps of 5 ms, a budget of 64 rows.
TEST(Simulation, EveryPartOfTheTimingsEqualsItsScriptedDelay) {
  SimulatedSystem::Options options{.prefill_workers = 1, .decode_workers = 1};
  options.network.delays = {absl::Milliseconds(2), absl::Milliseconds(2)};
  options.pace = {
      .step_base = absl::Milliseconds(5), .step_row = absl::ZeroDuration(), .bytes_per_second = 1e12};
  options.prefill.scheduler.chunk_tokens = 64;
  SimulatedSystem system(options);
  CallSpec spec = Spec(100, 5);
  spec.tokenize = absl::Milliseconds(3);
  const CallId call = system.Submit(Soon(system), spec);
  ASSERT_TRUE(system.Run().ok());
  const ClientAnswer& answer = system.answer(call);
  const v1::Timings& timings = answer.timings;
  EXPECT_DOUBLE_EQ(timings.tokenize_ms(), 3);
  EXPECT_DOUBLE_EQ(timings.router_queue_ms(), 0);
  EXPECT_DOUBLE_EQ(timings.reservation_ms(), 0);
  EXPECT_DOUBLE_EQ(timings.prefill_queue_ms(), 0);
  EXPECT_DOUBLE_EQ(timings.prefill_compute_ms(), 2 * 5);
  EXPECT_DOUBLE_EQ(timings.lost_attempts_ms(), 0);
  EXPECT_DOUBLE_EQ(timings.network_ms(), 4 * 2);  // to decode and back, to prefill and back
  EXPECT_DOUBLE_EQ(timings.ttft_ms(), 3 + 10 + 8);
  EXPECT_EQ(answer.first_token - answer.sent, absl::Milliseconds(21));
  // The last pieces are offered with the last layers, taken, and moved with the commit: three hops until
  // decode may step. A fourth tells prefill, and no token waits for that.
  EXPECT_NEAR(timings.handoff_ms(), 3 * 2, 0.01);
  EXPECT_NEAR(timings.first_gap_network_ms(), 0, 0.01);
  EXPECT_DOUBLE_EQ(timings.decode_queue_ms(), 0);
  EXPECT_DOUBLE_EQ(timings.first_step_ms(), 5);
  EXPECT_NEAR(timings.tpot_ms(), absl::ToDoubleMilliseconds(answer.ended_at - answer.first_token) / 4, 1e-6);
  EXPECT_NEAR(timings.e2e_ms(), timings.ttft_ms() + timings.tpot_ms() * 4, 1e-6);
}

TEST(Simulation, AWaitingRequestCountsItsQueueOnce) {
  SimulatedSystem::Options options{.prefill_workers = 1, .decode_workers = 1};
  options.network.delays = {absl::Milliseconds(1), absl::Milliseconds(1)};
  options.pace = {.step_base = absl::Milliseconds(10), .step_row = absl::ZeroDuration()};
  options.router.router.picker.prefill_depth_tokens = 1;  // one prompt at a time
  SimulatedSystem system(options);
  const absl::Time start = Soon(system);
  const CallId first = system.Submit(start, Spec(32, 2));
  const CallId second = system.Submit(start, Spec(32, 2));
  ASSERT_TRUE(system.Run().ok());
  EXPECT_DOUBLE_EQ(system.answer(first).timings.router_queue_ms(), 0);
  // Until the first one's token 0 is back: two hops to decode and back, one to prefill, the step, one back.
  EXPECT_DOUBLE_EQ(system.answer(second).timings.router_queue_ms(), 4 + 10);
  EXPECT_DOUBLE_EQ(system.answer(second).timings.ttft_ms(), 2 * (4 + 10));
}

TEST(Simulation, TheSameAnswerWhateverTheChunksAndBlockSizes) {
  for (uint32_t prefill_block : {8, 16, 32}) {
    for (uint32_t decode_block : {8, 16, 32}) {
      for (uint32_t chunk : {1, 7, 32, 64}) {
        SimulatedSystem::Options options{.prefill_workers = 1, .decode_workers = 1};
        options.prefill.engine.block_tokens = prefill_block;
        options.decode.engine.block_tokens = decode_block;
        options.prefill.scheduler.chunk_tokens = chunk;
        SimulatedSystem system(options);
        std::vector<std::pair<CallId, CallSpec>> calls;
        for (uint32_t length : {1, 15, 16, 17, 47, 48, 49, 130}) {
          CallSpec spec = Spec(length, 70, length);
          calls.emplace_back(system.Submit(Soon(system, 10), spec), spec);
        }
        ASSERT_TRUE(system.Run().ok());
        for (const auto& [call, spec] : calls) ExpectWholeAnswer(system, call, spec);
        ASSERT_EQ(system.CheckQuiescent(), absl::OkStatus());
      }
    }
  }
}

TEST(Simulation, ServesAggregatedWithDecodeWorkersAlone) {
  SimulatedSystem system({.prefill_workers = 0});
  const CallSpec spec = Spec(100, 20);
  const CallId call = system.Submit(Soon(system), spec);
  ASSERT_TRUE(system.Run().ok());
  ExpectWholeAnswer(system, call, spec);
  EXPECT_EQ(system.answer(call).timings.path(), v1::SERVING_PATH_AGGREGATED);
  EXPECT_EQ(system.answer(call).timings.path_reason(), "no prefill worker serves");
  EXPECT_EQ(system.bytes_landed(), 0);
}

TEST(Simulation, ShortPromptsGoAggregatedByThreshold) {
  SimulatedSystem::Options options;
  options.router.router.picker.aggregate_below = 50;
  SimulatedSystem system(options);
  const CallSpec below = Spec(49, 5), at = Spec(50, 5);
  const CallId a = system.Submit(Soon(system), below);
  const CallId b = system.Submit(Soon(system), at);
  ASSERT_TRUE(system.Run().ok());
  ExpectWholeAnswer(system, a, below);
  ExpectWholeAnswer(system, b, at);
  EXPECT_EQ(system.answer(a).timings.path_reason(), "short prompt");
  EXPECT_EQ(system.answer(b).timings.path(), v1::SERVING_PATH_DISAGGREGATED);
}

TEST(Simulation, AnAnswerOfOneTokenFreesBothSides) {
  const SimulatedSystem::Options options;
  SimulatedSystem system(options);
  const CallSpec spec = Spec(40, 1);
  const CallId call = system.Submit(Soon(system), spec);
  ASSERT_TRUE(system.Run().ok());
  ExpectWholeAnswer(system, call, spec);
  EXPECT_FALSE(system.answer(call).timings.has_tpot_ms());
  EXPECT_EQ(system.CheckQuiescent(), absl::OkStatus());
}

TEST(Simulation, AFullPoolMakesRequestsWaitNotFail) {
  SimulatedSystem::Options options{.prefill_workers = 1, .decode_workers = 1};
  options.decode.engine.context_tokens = 256;
  options.decode.engine.kv_bytes = 256 << 10;
  SimulatedSystem system(options);
  std::vector<std::pair<CallId, CallSpec>> calls;
  for (uint64_t i = 0; i < 40; ++i) {
    CallSpec spec = Spec(100, 60, i);
    calls.emplace_back(system.Submit(Soon(system, 100), spec), spec);
  }
  ASSERT_TRUE(system.Run().ok());
  for (const auto& [call, spec] : calls) ExpectWholeAnswer(system, call, spec);
  EXPECT_EQ(system.CheckQuiescent(), absl::OkStatus());
}

TEST(Simulation, RefusesWhatNoPoolCouldEverHold) {
  SimulatedSystem::Options options;
  options.decode.engine.context_tokens = 128;
  options.decode.engine.kv_bytes = 128 << 10;
  SimulatedSystem system(options);
  const CallId call = system.Submit(Soon(system), Spec(600, 400));
  ASSERT_TRUE(system.Run().ok());
  EXPECT_EQ(system.answer(call).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Simulation, AFullQueueRefusesAtOnce) {
  SimulatedSystem::Options options{.prefill_workers = 1, .decode_workers = 1};
  options.router.router.admission.max_queued = 4;
  options.router.router.admission.tenant_share = 1;
  options.router.router.picker.prefill_depth_tokens = 1;
  SimulatedSystem system(options);
  uint32_t refused = 0;
  for (int i = 0; i < 10; ++i) system.Submit(Soon(system), Spec(64, 4));
  ASSERT_TRUE(system.Run().ok());
  for (const auto& [call, answer] : system.answers()) {
    if (answer.status.ok()) continue;
    ++refused;
    EXPECT_EQ(answer.status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(answer.ended_at, answer.sent);
  }
  EXPECT_EQ(refused, 10 - 1 - 4);
}

TEST(Simulation, CancellingAtAnyPointFreesBothSidesAndDisturbsNobody) {
  for (int step = 0; step < 120; ++step) {
    SimulatedSystem system({.prefill_workers = 1, .decode_workers = 1});
    const CallSpec cancelled = Spec(100, 20, 1), other = Spec(80, 20, 2);
    const absl::Time start = Soon(system);
    const CallId a = system.Submit(start, cancelled);
    const CallId b = system.Submit(start, other);
    const absl::Time when = start + absl::Microseconds(250) * step;
    system.CancelAt(when, a);
    ASSERT_TRUE(system.Run().ok()) << "cancelled after " << when - start;
    ExpectWholeAnswer(system, b, other);
    const ClientAnswer& answer = system.answer(a);
    if (!answer.status.ok()) {
      EXPECT_EQ(answer.status.code(), absl::StatusCode::kCancelled);
      EXPECT_EQ(answer.ended_at, when);
    }
    ASSERT_EQ(system.CheckQuiescent(), absl::OkStatus()) << "cancelled after " << when - start;
  }
}

TEST(Simulation, AWorkerThatDiesCostsNoRequestAndNoToken) {
  for (const char* victim : {"prefill-0", "decode-0"}) {
    for (int step = 0; step < 60; ++step) {
      const SimulatedSystem::Options options;
      SimulatedSystem system(options);
      std::vector<std::pair<CallId, CallSpec>> calls;
      const absl::Time start = Soon(system);
      for (uint64_t i = 0; i < 4; ++i) {
        CallSpec spec = Spec(90 + 10 * static_cast<uint32_t>(i), 20, i);
        calls.emplace_back(system.Submit(start, spec), spec);
      }
      system.KillAt(start + absl::Microseconds(500) * step, victim);
      ASSERT_TRUE(system.Run().ok()) << victim << " killed at step " << step;
      for (const auto& [call, spec] : calls) ExpectWholeAnswer(system, call, spec);
      ASSERT_EQ(system.CheckQuiescent(), absl::OkStatus()) << victim << " killed at step " << step;
    }
  }
}

TEST(Simulation, TwoLostWorkersEndARequest) {
  SimulatedSystem system({.prefill_workers = 0});
  const absl::Time start = Soon(system);
  const CallId call = system.Submit(start, Spec(100, 200));
  system.KillAt(start + absl::Milliseconds(20), "decode-0");
  system.KillAt(start + absl::Milliseconds(40), "decode-1");
  ASSERT_TRUE(system.Run().ok());
  EXPECT_EQ(system.answer(call).status.code(), absl::StatusCode::kUnavailable);
}

TEST(Simulation, ARestartedWorkerServesAgain) {
  SimulatedSystem system({.prefill_workers = 1, .decode_workers = 1});
  const absl::Time start = Soon(system);
  system.RestartAt(start, "prefill-0");
  system.RestartAt(start, "decode-0");
  const CallSpec spec = Spec(100, 20);
  const CallId call = system.Submit(start + absl::Seconds(2), spec);
  ASSERT_TRUE(system.Run().ok());
  ExpectWholeAnswer(system, call, spec);
  EXPECT_EQ(system.answer(call).timings.path(), v1::SERVING_PATH_DISAGGREGATED);
}

TEST(Simulation, TimeLimitAndDeadlineEndAnAnswer) {
  const SimulatedSystem::Options options;
  SimulatedSystem system(options);
  const absl::Time start = Soon(system);
  CallSpec limited = Spec(50, 500);
  limited.time_limit = absl::Milliseconds(50);
  CallSpec late = Spec(50, 500);
  late.deadline = start + absl::Milliseconds(60);
  const CallId a = system.Submit(start, limited);
  const CallId b = system.Submit(start, late);
  ASSERT_TRUE(system.Run().ok());
  EXPECT_TRUE(system.answer(a).status.ok());
  EXPECT_EQ(system.answer(a).finish.reason(), v1::FINISH_REASON_TIME_LIMIT);
  EXPECT_EQ(system.answer(a).ended_at, start + absl::Milliseconds(50));
  EXPECT_EQ(system.answer(b).status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(system.answer(b).ended_at, late.deadline);
  EXPECT_EQ(system.CheckQuiescent(), absl::OkStatus());
}

TEST(Simulation, AStopStringMayBeginInTokenZero) {
  const SimulatedSystem::Options options;
  SimulatedSystem system(options);
  CallSpec spec = Spec(60, 20);
  const std::vector<TokenId> expected = system.Expected(spec, 1);
  const std::string text(expected.begin(), expected.end());
  spec.stop_strings = {text.substr(0, 3)};
  const CallId call = system.Submit(Soon(system), spec);
  ASSERT_TRUE(system.Run().ok());
  EXPECT_EQ(system.answer(call).text, "");
  EXPECT_EQ(system.answer(call).finish.stop_string(), text.substr(0, 3));
  EXPECT_EQ(system.answer(call).usage.completion_tokens(), 3);
  EXPECT_EQ(system.CheckQuiescent(), absl::OkStatus());
}

// A thousand requests of mixed lengths over two prefill and two decode workers, with jitter on every link.
std::string RunThousand(uint64_t seed) {
  SimulatedSystem::Options options;
  options.seed = seed;
  options.network.delays = {absl::Microseconds(20), absl::Milliseconds(3)};
  options.prefill.engine.block_tokens = 32;
  options.decode.engine.end_every = options.prefill.engine.end_every = 40;
  options.check_every = 500;
  SimulatedSystem system(options);
  std::vector<std::pair<CallId, CallSpec>> calls;
  absl::Time when = Soon(system);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t draw = system.world().random().Next();
    CallSpec spec = Spec(1 + draw % 150, 1 + (draw >> 16) % 40, draw >> 32);
    when += absl::Microseconds((draw >> 40) % 8000);
    calls.emplace_back(system.Submit(when, spec), spec);
  }
  const absl::Status status = system.Run();
  EXPECT_EQ(status, absl::OkStatus());
  std::string trace;
  for (const auto& [call, spec] : calls) {
    ExpectWholeAnswer(system, call, spec);
    trace +=
        StrCat(call, ":", absl::ToInt64Nanoseconds(system.answer(call).ended_at - absl::UnixEpoch()), " ");
  }
  EXPECT_EQ(system.CheckQuiescent(), absl::OkStatus());
  return StrCat(trace, system.world().events_run());
}

TEST(Simulation, AThousandRequestsAndTheSameRunAgainFromTheSameSeed) {
  const std::string first = RunThousand(7);
  EXPECT_EQ(first, RunThousand(7));
  EXPECT_NE(first, RunThousand(8));
}

}  // namespace
}  // namespace baton
