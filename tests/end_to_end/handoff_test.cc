#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/load_engine.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/worker_pair.h"
#include "tests/support/gated_engine.h"
#include "tests/support/leg_requests.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

constexpr uint32_t kChunk =
    32;  // so that a prompt takes several steps, and layers of one overlap the transfer of another

std::unique_ptr<Engine> Load(Architecture architecture, uint32_t block_tokens,
                             uint64_t kv_bytes = uint64_t{8} << 20) {
  static auto& paths = *new std::map<Architecture, std::string>;
  std::string& path = paths[architecture];
  if (path.empty()) path = WriteTinyModel(architecture, 7, testing::TempDir());
  EngineOptions options;
  options.model_path = path;
  options.context_tokens = 512;
  options.kv_bytes = kv_bytes;
  options.block_tokens = block_tokens;
  options.max_step_tokens = kChunk;
  options.max_batch_rows = 128;
  options.layer_range = 2;
  absl::StatusOr<std::unique_ptr<Engine>> engine = LoadEngine(options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

v1::TokenRequest Request(uint32_t prompt_tokens, uint32_t salt, uint32_t max_tokens) {
  v1::TokenRequest request = MakeTokenRequest(LetterPrompt(prompt_tokens, salt), max_tokens);
  request.set_logprobs(0);
  return request;
}

// Architecture, blocks of prefill, blocks of decode, transport.
using Case = std::tuple<Architecture, uint32_t, uint32_t, std::string>;

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto& [architecture, prefill, decode, transport] = info.param;
  return std::string(architecture == Architecture::kGemma3 ? "gemma3" : "llama") + "_" +
         std::to_string(prefill) + "_" + std::to_string(decode) + "_" + transport;
}

class HandoffTest : public testing::TestWithParam<Case> {
 protected:
  HandoffTest()
      : prefill_engine_(Load(std::get<0>(GetParam()), std::get<1>(GetParam()))),
        decode_engine_(Load(std::get<0>(GetParam()), std::get<2>(GetParam()))),
        pair_(std::make_unique<WorkerPair>(
            prefill_engine_.get(), decode_engine_.get(), std::get<3>(GetParam()),
            PrefillSchedulerOptions{.token_budget = 128, .chunk_tokens = kChunk},
            DecodeSchedulerOptions{.token_budget = 128, .chunk_tokens = kChunk})) {}
  ~HandoffTest() override {
    EXPECT_TRUE(pair_->prefill().AwaitIdle());
    EXPECT_TRUE(pair_->decode().AwaitIdle());
    pair_.reset();
    EXPECT_TRUE(prefill_engine_->kv().CheckAllFree().ok());
    EXPECT_TRUE(decode_engine_->kv().CheckAllFree().ok());
  }

  std::unique_ptr<Engine> prefill_engine_;
  std::unique_ptr<Engine> decode_engine_;
  std::unique_ptr<WorkerPair> pair_;
};

// Lengths around blocks, chunks and the sliding window (32 tokens).
TEST_P(HandoffTest, DisaggregatedEqualsLocalTokenForTokenAndLogprobForLogprob) {
  for (const uint32_t prompt_tokens : {1u, 16u, 33u, 100u}) {
    const v1::TokenRequest request = Request(prompt_tokens, prompt_tokens, 24);
    const WorkerPair::Answer local = pair_->Local(request);
    ASSERT_TRUE(local.status.ok()) << local.status;
    ASSERT_EQ(local.tokens.size(), 24);
    ASSERT_EQ(local.logprobs.size(), 24);
    const WorkerPair::Answer answer = pair_->Disaggregated(request);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_TRUE(answer.prefill_status.ok()) << answer.prefill_status;
    EXPECT_EQ(answer.tokens, local.tokens);
    EXPECT_EQ(answer.logprobs, local.logprobs);
    EXPECT_EQ(answer.finish, v1::LEG_FINISH_LENGTH);
    EXPECT_EQ(answer.transport, std::get<3>(GetParam()));
    EXPECT_GT(answer.kv_bytes, 0);
  }
}

TEST_P(HandoffTest, EqualsLocalAmongOthersAndWithSampling) {
  constexpr uint32_t kRequests = 6;
  std::vector<v1::TokenRequest> requests;
  std::vector<WorkerPair::Answer> alone, together(kRequests);
  for (uint32_t i = 0; i < kRequests; ++i) {
    requests.push_back(Request(20 + 23 * i, i, 16));
    requests.back().mutable_sampling()->set_temperature(i % 2);
    requests.back().mutable_sampling()->set_seed(i);
    requests.back().mutable_sampling()->set_frequency_penalty(i == 3 ? 1.5 : 0);
    alone.push_back(pair_->Local(requests.back()));
  }
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kRequests; ++i) {
    threads.emplace_back(
        [&, i] { together[i] = pair_->Disaggregated(requests[i], "request-" + std::to_string(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < kRequests; ++i) {
    EXPECT_TRUE(together[i].status.ok()) << together[i].status;
    EXPECT_EQ(together[i].tokens, alone[i].tokens) << i;
    EXPECT_EQ(together[i].logprobs, alone[i].logprobs) << i;
  }
}

TEST_P(HandoffTest, AReplayContinuesAsTheAnswerWouldHave) {
  const v1::TokenRequest request = Request(70, 3, 40);
  const WorkerPair::Answer whole = pair_->Local(request);
  ASSERT_EQ(whole.tokens.size(), 40);
  v1::TokenRequest rest = request;
  rest.mutable_output()->Assign(whole.tokens.begin(), whole.tokens.begin() + 25);
  WorkerPair::Legs legs = pair_->Open(rest, "replay");
  std::vector<TokenId> tokens;
  while (const std::optional<v1::DecodeEvent> event = legs.decode->Next()) {
    for (const v1::LegToken& token : event->tokens().tokens()) tokens.push_back(token.id());
  }
  EXPECT_TRUE(legs.decode->Finish().ok()) << legs.decode->Finish();
  EXPECT_EQ(tokens, std::vector<TokenId>(whole.tokens.begin() + 25, whole.tokens.end()));
  EXPECT_TRUE(legs.prefill->Finish().ok()) << legs.prefill->Finish();
}

INSTANTIATE_TEST_SUITE_P(Pairs, HandoffTest,
                         testing::Combine(testing::Values(Architecture::kLlama, Architecture::kGemma3),
                                          testing::Values(16u, 32u), testing::Values(16u, 32u),
                                          testing::Values("grpc", "inproc")),
                         NameOf);

// Full attention alone: a window's blocks are reserved whole, and a pool of both runs out of windows first.
TEST(PreemptionTest, APreemptedAnswerIsTheSameTokenForTokenAndLogprobForLogprob) {
  const std::unique_ptr<Engine> prefill = Load(Architecture::kLlama, 16);
  // Room for less than two of the three answers.
  const KvGeometry& geometry = prefill->kv().geometry();
  const uint64_t longest_bytes = geometry.BlocksFor(0, 512, kChunk) * geometry.block_bytes(0);
  const std::unique_ptr<Engine> decode = Load(Architecture::kLlama, 16, longest_bytes * 5 / 4);
  GatedEngine gate(prefill.get());  // all are reserved before the first decodes
  WorkerPair pair(&gate, decode.get(), "grpc", {.token_budget = 128, .chunk_tokens = kChunk},
                  {.token_budget = 128, .chunk_tokens = kChunk, .reserve_tokens = 16});
  constexpr uint32_t kRequests = 3;
  std::vector<v1::TokenRequest> requests;
  std::vector<WorkerPair::Answer> alone;
  for (uint32_t i = 0; i < kRequests; ++i) {
    requests.push_back(Request(60 + 10 * i, i, 300));
    requests.back().mutable_sampling()->set_temperature(i % 2);
    alone.push_back(pair.Local(requests.back()));
    ASSERT_EQ(alone.back().tokens.size(), 300) << alone.back().status;
  }
  prometheus::Counter& preemptions = pair.decode_metrics().Get<Metric::kPreemptions>();
  EXPECT_EQ(preemptions.Value(), 0);

  gate.Close();
  std::vector<WorkerPair::Legs> legs;
  absl::Cleanup open_gate = [&gate] { gate.Open(); };
  for (uint32_t i = 0; i < kRequests; ++i) {
    legs.push_back(pair.Open(requests[i], "request-" + std::to_string(i)));
    ASSERT_NE(legs.back().prefill, nullptr) << legs.back().decode->Finish();
  }
  std::move(open_gate).Invoke();
  for (uint32_t i = 0; i < kRequests; ++i) {
    const WorkerPair::Answer answer = WorkerPair::Read(legs[i].decode.get());
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.tokens, alone[i].tokens) << i;
    EXPECT_EQ(answer.logprobs, alone[i].logprobs) << i;
    EXPECT_TRUE(legs[i].prefill->Finish().ok()) << legs[i].prefill->Finish();
  }
  EXPECT_GE(preemptions.Value(), 1);
  EXPECT_GE(pair.decode_metrics().Get<Metric::kRecomputedTokens>().Value(), 60);
  EXPECT_TRUE(pair.decode().AwaitIdle());
}

}  // namespace
}  // namespace baton
