#include "tests/end_to_end/equality.h"

#include <memory>
#include <utility>

#include "common/check.h"
#include "common/str_cat.h"
#include "engine/load_engine.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/answer.h"
#include "tests/end_to_end/cluster.h"
#include "tests/support/leg_requests.h"

namespace baton {
namespace {

constexpr uint32_t kContextTokens = 1024;
constexpr uint32_t kMaxStepTokens = 512;

v1::GenerateRequest GreedyRequest(uint32_t number, uint32_t prompt_tokens, uint32_t max_tokens) {
  v1::GenerateRequest request = Request(
      "sampling { temperature: 0 seed: 1 } stopping { ignore_eos: true } "
      "response { return_tokens: true logprobs: 3 }");
  const std::vector<TokenId> prompt = LetterPrompt(prompt_tokens, number);
  request.mutable_tokens()->mutable_ids()->Assign(prompt.begin(), prompt.end());
  request.mutable_stopping()->set_max_tokens(max_tokens);
  return request;
}

// Bytes of the KV that decode needs of a prompt.
uint64_t PromptKvBytes(const KvGeometry& geometry, uint32_t prompt_tokens) {
  uint64_t bytes = 0;
  for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
    bytes += geometry.NeededAfter(group, prompt_tokens).size() * geometry.groups[group].layers.size() *
             geometry.token_bytes(group);
  }
  return bytes;
}

}  // namespace

void PrintTo(const EqualityCase& c, std::ostream* out) { *out << NameOf(c); }

std::string NameOf(const EqualityCase& c) {
  return StrCat("chunk", c.chunk_tokens, "_blocks", c.prefill_block, "to", c.decode_block, "_", c.transport,
                "_threads", c.threads);
}

EqualitySuite::EqualitySuite(std::string model_path, const EqualityRequests& requests, uint64_t kv_bytes)
    : model_path_(std::move(model_path)), kv_bytes_(kv_bytes), max_tokens_(requests.max_tokens) {
  absl::StatusOr<std::unique_ptr<ServedModel>> model = ServedModel::Load(model_path_);
  BATON_CHECK(model.ok());
  model_ = *std::move(model);
  requests_.push_back(GreedyRequest(0, requests.alone_tokens, max_tokens_));
  for (uint32_t tokens : requests.crowd_tokens) {
    requests_.push_back(GreedyRequest(static_cast<uint32_t>(requests_.size()), tokens, max_tokens_));
  }
  Cluster alone({.model = model_.get(), .decode = {GetEngine(v1::ROLE_DECODE, 16, 1)}});
  for (const v1::GenerateRequest& request : requests_) {
    const Answer answer = Generate(alone.inference(), request);
    BATON_CHECK(answer.status.ok() && answer.whole.timings().path() == v1::SERVING_PATH_AGGREGATED);
    expected_.push_back(Decided(answer.whole));
  }
}

EqualitySuite::~EqualitySuite() = default;

Engine* EqualitySuite::GetEngine(v1::Role role, uint32_t block_tokens, uint32_t threads) {
  std::unique_ptr<Engine>& engine = engines_[{role, block_tokens, threads}];
  if (engine != nullptr) return engine.get();
  absl::StatusOr<std::unique_ptr<Engine>> loaded = LoadEngine({.model_path = model_path_,
                                                               .threads = threads,
                                                               .context_tokens = kContextTokens,
                                                               .kv_bytes = kv_bytes_,
                                                               .block_tokens = block_tokens,
                                                               .max_step_tokens = kMaxStepTokens,
                                                               .layer_range = 2});
  BATON_CHECK(loaded.ok());
  engine = *std::move(loaded);
  return engine.get();
}

void EqualitySuite::Compare(const Answer& answer, size_t number, const KvGeometry& geometry,
                            const std::string& transport) const {
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.whole.tokens_size(), max_tokens_);
  EXPECT_EQ(answer.whole.logprobs_size(), max_tokens_);
  EXPECT_EQ(Difference(Decided(answer.whole), expected_[number]), "") << "request " << number;
  const v1::Timings& timings = answer.whole.timings();
  EXPECT_EQ(timings.path(), v1::SERVING_PATH_DISAGGREGATED) << timings.path_reason();
  EXPECT_EQ(timings.transport(), transport);
  EXPECT_EQ(timings.kv_bytes(), PromptKvBytes(geometry, requests_[number].tokens().ids_size()));
  EXPECT_EQ(timings.recoveries(), 0);
}

void EqualitySuite::ExpectEqual(const EqualityCase& c) {
  Engine* const prefill = GetEngine(v1::ROLE_PREFILL, c.prefill_block, c.threads);
  Engine* const decode = GetEngine(v1::ROLE_DECODE, c.decode_block, c.threads);
  Cluster cluster({.model = model_.get(),
                   .prefill = {prefill},
                   .decode = {decode},
                   .transport = c.transport,
                   .prefill_options = {.chunk_tokens = c.chunk_tokens}});
  const KvGeometry& geometry = decode->kv().geometry();
  Compare(Stream(cluster.inference(), requests_[0]), 0, geometry, c.transport);
  std::vector<std::unique_ptr<AnswerStream>> crowd;
  for (size_t i = 1; i < requests_.size(); ++i) {
    crowd.push_back(std::make_unique<AnswerStream>(cluster.inference(), requests_[i]));
  }
  for (size_t i = 1; i < requests_.size(); ++i) Compare(crowd[i - 1]->Finish(), i, geometry, c.transport);
}

}  // namespace baton
