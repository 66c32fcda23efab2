#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/load_engine.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using ::testing::HasSubstr;

std::string ModelFor(Architecture architecture) {
  static const std::string paths[] = {WriteTinyModel(Architecture::kLlama, 1, ::testing::TempDir()),
                                      WriteTinyModel(Architecture::kGemma3, 1, ::testing::TempDir())};
  return paths[architecture == Architecture::kLlama ? 0 : 1];
}

EngineOptions Options(Architecture architecture) {
  EngineOptions options;
  options.model_path = ModelFor(architecture);
  options.context_tokens = 256;
  options.kv_bytes = 8 << 20;
  options.max_step_tokens = 128;
  options.max_batch_rows = 256;
  options.layer_range = 3;
  return options;
}

std::unique_ptr<Engine> Load(const EngineOptions& options) {
  auto engine = LoadEngine(options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

// A request that prefills its prompt in chunks and then decodes, with everything that an engine can be asked
// for.
class Request {
 public:
  Request(Engine& engine, std::vector<TokenId> prompt, uint32_t output, SamplingParams params)
      : tokens_(std::move(prompt)),
        prompt_tokens_(static_cast<uint32_t>(tokens_.size())),
        want_(prompt_tokens_ + output),
        sampler_(params, engine.info().vocab_size, tokens_, {}),
        kv_(*engine.kv().Reserve(want_)) {
    kv_.Activate();
  }

  bool done() const { return tokens_.size() == want_; }

  SequenceStep NextStep(uint32_t chunk) {
    const uint32_t known = static_cast<uint32_t>(tokens_.size());
    rows_ = std::min(chunk, known - computed_);
    SequenceStep step;
    step.phase = computed_ < prompt_tokens_ ? Phase::kPrefill : Phase::kDecode;
    step.tokens = absl::MakeConstSpan(tokens_).subspan(computed_, rows_);
    step.position = computed_;
    step.kv = &kv_;
    if (computed_ < prompt_tokens_) {
      step.prompt_logprobs = 2;
      if (computed_ + rows_ < known) step.next_token = tokens_[computed_ + rows_];
    }
    if (computed_ + rows_ == known) {
      step.sampler = &sampler_;
      step.logprobs = 3;
    }
    return step;
  }

  void Take(const SequenceResult& result) {
    computed_ += rows_;
    for (const SampledToken& token : result.prompt_logprobs) Record(token);
    if (!result.sampled) return;
    Record(*result.sampled);
    tokens_.push_back(result.sampled->id);
    sampler_.Observe(result.sampled->id);
  }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  // Every number that came out, as bits.
  const std::vector<uint32_t>& record() const { return record_; }

 private:
  void Record(const SampledToken& token) {
    record_.push_back(token.id);
    RecordFloat(token.logprob);
    for (const TokenLogprob& top : token.top) {
      record_.push_back(top.id);
      RecordFloat(top.logprob);
    }
  }
  void RecordFloat(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    record_.push_back(bits);
  }

  std::vector<TokenId> tokens_;
  const uint32_t prompt_tokens_;
  const size_t want_;
  Sampler sampler_;
  SequenceKv kv_;
  uint32_t computed_ = 0;
  uint32_t rows_ = 0;
  std::vector<uint32_t> record_;
};

std::vector<TokenId> Prompt(uint32_t length, uint32_t seed) {
  std::vector<TokenId> tokens(length);
  for (uint32_t i = 0; i < length; ++i) tokens[i] = (seed * 7919 + i * i * 31 + i * 17) % 270;
  return tokens;
}

SamplingParams Params(uint32_t index) {
  SamplingParams params;
  params.temperature = index % 2 == 0 ? 0 : 0.8;
  params.seed = index;
  return params;
}

constexpr uint32_t kRequests = 3;
constexpr uint32_t kPromptTokens[kRequests] = {70, 1, 33};

std::vector<std::unique_ptr<Request>> MakeRequests(Engine& engine) {
  std::vector<std::unique_ptr<Request>> requests;
  for (uint32_t i = 0; i < kRequests; ++i) {
    requests.push_back(std::make_unique<Request>(engine, Prompt(kPromptTokens[i], i), 20, Params(i)));
  }
  return requests;
}

using Records = std::vector<std::vector<uint32_t>>;

Records RunAlone(Engine& engine, uint32_t chunk) {
  Records records;
  for (auto& request : MakeRequests(engine)) {
    while (!request->done()) {
      StepPlan plan;
      plan.sequences.push_back(request->NextStep(chunk));
      request->Take(engine.Execute(plan, nullptr).sequences[0]);
    }
    records.push_back(request->record());
  }
  return records;
}

// All at once, so that prefill chunks of one meet decode rows of another.
Records RunTogether(Engine& engine, uint32_t chunk) {
  auto requests = MakeRequests(engine);
  for (bool busy = true; busy;) {
    StepPlan plan;
    std::vector<Request*> running;
    for (auto& request : requests) {
      if (request->done()) continue;
      plan.sequences.push_back(request->NextStep(chunk));
      running.push_back(request.get());
    }
    busy = !running.empty();
    if (!busy) break;
    StepResult result = engine.Execute(plan, nullptr);
    for (size_t i = 0; i < running.size(); ++i) running[i]->Take(result.sequences[i]);
  }
  Records records;
  for (auto& request : requests) records.push_back(request->record());
  return records;
}

class EngineTest : public ::testing::TestWithParam<Architecture> {};

INSTANTIATE_TEST_SUITE_P(Architectures, EngineTest,
                         ::testing::Values(Architecture::kLlama, Architecture::kGemma3),
                         [](const auto& info) {
                           return info.param == Architecture::kLlama ? "Llama" : "Gemma3";
                         });

TEST_P(EngineTest, SameBitsWhateverTheChunksAndTheBatch) {
  auto engine = Load(Options(GetParam()));
  const Records expected = RunAlone(*engine, 128);
  ASSERT_EQ(expected.size(), kRequests);
  // ids and log probabilities of 69 prompt tokens with 2 alternatives and 20 sampled ones with 3
  EXPECT_EQ(expected[0].size(), 69 * 6 + 20 * 8);
  for (const uint32_t chunk : {1u, 7u, 32u})
    EXPECT_EQ(RunAlone(*engine, chunk), expected) << "chunk " << chunk;
  for (const uint32_t chunk : {5u, 128u})
    EXPECT_EQ(RunTogether(*engine, chunk), expected) << "chunk " << chunk;
  EXPECT_TRUE(engine->kv().CheckAllFree().ok());
}

TEST_P(EngineTest, SameBitsOfARecipeWhateverTheThreadsTheBlocksAndTheKernels) {
  for (const KvType type : {KvType::kF16, KvType::kF32, KvType::kBF16}) {
    std::map<std::string, Records> expected;  // by recipe
    for (const std::string& kernels : KernelChoices()) {
      for (const uint32_t threads : {1u, 2u}) {
        EngineOptions options = Options(GetParam());
        options.kv_type = type;
        options.kernels = kernels;
        options.threads = threads;
        options.block_tokens = threads == 1 ? 32 : 16;
        auto engine = LoadEngine(options);
        if (absl::IsUnimplemented(engine.status())) continue;  // the processor does not run them
        ASSERT_TRUE(engine.ok()) << engine.status();
        const EngineInfo& info = (*engine)->info();
        EXPECT_EQ(info.prefill_recipe, info.decode_recipe);
        const Records records = RunTogether(**engine, 32);
        EXPECT_EQ(records, expected.try_emplace(info.decode_recipe, records).first->second)
            << kernels << " " << threads << " " << KvTypeName(type);
      }
    }
    // The reference's and that of the portable kernels, at least.
    EXPECT_GE(expected.size(), 2);
  }
}

TEST_P(EngineTest, TheReferenceGivesTheSameBitsWhateverTheChunks) {
  EngineOptions options = Options(GetParam());
  options.kernels = "reference";
  options.threads = 2;
  auto engine = Load(options);
  EXPECT_EQ(engine->info().prefill_recipe, "f32-reference-v1");
  EXPECT_EQ(RunTogether(*engine, 9), RunAlone(*engine, 128));
}

TEST_P(EngineTest, LayerRangesAreCalledInOrder) {
  auto engine = Load(Options(GetParam()));
  const uint32_t layers = GetParam() == Architecture::kLlama ? 4 : 7;
  std::vector<LayerRange> expected = {{0, 3}, {3, layers == 4 ? 4u : 6u}};
  if (layers == 7) expected.push_back({6, 7});
  EXPECT_EQ(engine->info().layers, layers);
  EXPECT_EQ(engine->info().layer_ranges, expected);
  Request request(*engine, Prompt(10, 1), 1, Params(0));
  StepPlan plan;
  plan.sequences.push_back(request.NextStep(10));
  std::vector<LayerRange> seen;
  engine->Execute(plan, [&](LayerRange range) { seen.push_back(range); });
  EXPECT_EQ(seen, expected);
}

TEST_P(EngineTest, WhenARangeIsCalledItsKvIsWritten) {
  auto engine = Load(Options(GetParam()));
  Request request(*engine, Prompt(16, 1), 1, Params(0));
  StepPlan plan;
  plan.sequences.push_back(request.NextStep(16));
  const SequenceKv& kv = *plan.sequences[0].kv;
  const BlockPool& pool = engine->kv().pool(0);
  const uint32_t layers = static_cast<uint32_t>(engine->kv().geometry().groups[0].layers.size());
  const auto snapshot = [&](uint32_t layer) {
    const DeviceSpan plane = pool.plane(layer, kv.table(0)[0]);
    return std::string(reinterpret_cast<const char*>(plane.data), plane.bytes);
  };
  std::vector<std::string> at_callback(layers);
  engine->Execute(plan, [&](LayerRange range) {
    for (uint32_t i = 0; i < layers; ++i) {
      const uint32_t layer = engine->kv().geometry().groups[0].layers[i];
      if (layer >= range.begin && layer < range.end) at_callback[i] = snapshot(i);
    }
  });
  for (uint32_t i = 0; i < layers; ++i) {
    EXPECT_EQ(at_callback[i], snapshot(i));
    EXPECT_NE(at_callback[i], std::string(at_callback[i].size(), '\0'));
  }
}

TEST_P(EngineTest, FingerprintsFollowTheWeightsAndTheLayout) {
  const EngineOptions options = Options(GetParam());
  const std::string fingerprint = Load(options)->info().fingerprint;
  EngineOptions same = options;
  same.block_tokens = 32;
  same.threads = 2;
  EXPECT_EQ(Load(same)->info().fingerprint, fingerprint);
  EngineOptions other_type = options;
  other_type.kv_type = KvType::kBF16;
  EXPECT_NE(Load(other_type)->info().fingerprint, fingerprint);
  EngineOptions other_weights = options;
  other_weights.model_path = WriteTinyModel(GetParam(), 2, ::testing::TempDir());
  EXPECT_NE(Load(other_weights)->info().fingerprint, fingerprint);
}

TEST(LoadEngineTest, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](auto change, const char* text) {
    EngineOptions options = Options(Architecture::kLlama);
    change(options);
    const absl::Status status = LoadEngine(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  refused([](EngineOptions& o) { o.threads = 0; }, "threads is 0");
  refused([](EngineOptions& o) { o.threads = 5000; }, "threads is 5000");
  refused([](EngineOptions& o) { o.block_tokens = 0; }, "block_tokens is 0");
  refused([](EngineOptions& o) { o.block_tokens = 24; }, "block_tokens is 24, must be a power of two");
  refused([](EngineOptions& o) { o.max_step_tokens = 0; }, "max_step_tokens is 0");
  refused([](EngineOptions& o) { o.max_step_tokens = 257; }, "max_step_tokens is 257, must be 1 to 256");
  refused([](EngineOptions& o) { o.max_batch_rows = 1 << 20; }, "max_batch_rows is 1048576");
  refused([](EngineOptions& o) { o.layer_range = 0; }, "layer_range is 0");
  refused([](EngineOptions& o) { o.context_tokens = 2049; }, "context_tokens is 2049, must be 1 to 2048");
  refused([](EngineOptions& o) { o.kernels = "mmx"; }, "kernels \"mmx\"");
  refused([](EngineOptions& o) { o.cores.assign(o.threads + 1, 0); }, "must name one for each");
}

TEST(LoadEngineTest, SaysWhatIsMissing) {
  EngineOptions options = Options(Architecture::kLlama);
  options.model_path = "/nonexistent.gguf";
  EXPECT_EQ(LoadEngine(options).status().code(), absl::StatusCode::kNotFound);
  options = Options(Architecture::kLlama);
  options.kv_bytes = 1000;
  EXPECT_EQ(LoadEngine(options).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(LoadEngineTest, PackedWeightsKeepToTheirLimit) {
  EngineOptions options = Options(Architecture::kLlama);
  auto loaded = LoadEngine(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  options.weight_bytes = (*loaded)->info().weight_bytes;
  EXPECT_GT(options.weight_bytes, 0u);
  EXPECT_TRUE(LoadEngine(options).ok());
  --options.weight_bytes;
  EXPECT_EQ(LoadEngine(options).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace baton
