// Real models against independent oracles: float32 logits, and what llama.cpp makes of the same files.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/engine.h"
#include "engine/kv/kv_pools.h"
#include "engine/load_engine.h"
#include "engine/model/model_geometry.h"
#include "engine/model/transformer.h"
#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/cpu/cpu_ops.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "engine/ops/cpu/reference_ops.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_reader.h"
#include "tests/support/model_path.h"

namespace baton {
namespace {

constexpr uint32_t kThreads = 2;
constexpr uint32_t kChunk = 256;
constexpr uint32_t kContext = 2048;

// A model below the facade, where its logits can be seen.
class LogitsModel {
 public:
  LogitsModel(std::string_view name, bool reference, KvType type) {
    file_ = *ModelFile::Open(ModelPath(name));
    config_ = *ReadModelConfig(*file_);
    device_ = CreateCpuDevice();
    ops_ = reference ? CreateReferenceOps(device_.get(), kThreads)
                     : CreateCpuOps(device_.get(), *SupportedKernels().front(), {.threads = kThreads});
    const KvGeometry geometry = GeometryOf(config_, type, 16);
    pools_ = *KvPools::Create(device_.get(), geometry, uint64_t{512} << 20, kContext, kChunk);
    transformer_ = *Transformer::Load(*file_, config_, device_.get(), ops_.get(), kChunk);
  }

  // Calls visit(row, logits) for each of `rows` (ascending) of one sequence.
  template <typename Visit>
  void Run(const std::vector<TokenId>& tokens, const std::vector<uint32_t>& rows, Visit visit) {
    SequenceKv kv = *pools_->Reserve(static_cast<uint32_t>(tokens.size()));
    kv.Activate();
    std::vector<float> logits;
    size_t next = 0;
    for (uint32_t begin = 0; begin < tokens.size(); begin += kChunk) {
      const uint32_t end = std::min<uint32_t>(begin + kChunk, static_cast<uint32_t>(tokens.size()));
      Batch batch;
      batch.tokens.assign(tokens.begin() + begin, tokens.begin() + end);
      BatchSequence& sequence = batch.sequences.emplace_back();
      sequence.rows = end - begin;
      sequence.position = begin;
      for (uint32_t group = 0; group < kv.groups(); ++group) sequence.tables.push_back(kv.table(group));
      transformer_->Forward(batch, *pools_, [](uint32_t) {});
      while (next < rows.size() && rows[next] < end) {
        std::vector<uint32_t> wanted;
        for (; next < rows.size() && rows[next] < end && wanted.size() < transformer_->logits_rows();
             ++next) {
          wanted.push_back(rows[next] - begin);
        }
        logits.resize(wanted.size() * config_.vocab_size);
        transformer_->Logits(wanted, absl::MakeSpan(logits));
        for (size_t i = 0; i < wanted.size(); ++i) {
          visit(begin + wanted[i],
                absl::MakeConstSpan(logits).subspan(i * config_.vocab_size, config_.vocab_size));
        }
      }
    }
  }

 private:
  std::unique_ptr<ModelFile> file_;
  ModelConfig config_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<KvPools> pools_;
  std::unique_ptr<Transformer> transformer_;
};

struct Subject {
  const char* name;  // in golden file names
  std::string_view file;
};
constexpr Subject kSmolLm2 = {"smollm2", kSmolLm2File};
constexpr Subject kGemma3 = {"gemma3", kGemma3File};

class GoldenTest : public ::testing::TestWithParam<Subject> {
 protected:
  std::string Golden(std::string_view kind, std::string_view extension) const {
    return std::string("tests/golden/").append(kind).append("_").append(GetParam().name).append(extension);
  }
};

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::Values(kSmolLm2, kGemma3),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(GoldenTest, TheReferenceIsTheFloat32Model) {
  const auto prompts = golden::ReadLogits(Golden("logits", ".bin"));
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  LogitsModel model(GetParam().file, /*reference=*/true, KvType::kF32);
  ASSERT_FALSE(prompts->empty());
  for (const golden::LogitsPrompt& prompt : *prompts) {
    std::vector<uint32_t> rows;
    for (const golden::LogitsRow& row : prompt.rows) rows.push_back(row.row);
    ASSERT_FALSE(rows.empty());
    size_t seen = 0;
    float worst = 0;
    model.Run(prompt.tokens, rows, [&](uint32_t index, absl::Span<const float> logits) {
      const golden::LogitsRow& expected = prompt.rows[seen++];
      ASSERT_EQ(expected.row, index);
      for (size_t i = 0; i < expected.values.size(); ++i) {
        worst = std::max(worst, std::fabs(expected.values[i] - logits[i * expected.stride]));
      }
      for (size_t i = 0; i < expected.top.ids.size(); ++i) {
        worst = std::max(worst, std::fabs(expected.top.logits[i] - logits[expected.top.ids[i]]));
      }
    });
    EXPECT_EQ(seen, prompt.rows.size());
    EXPECT_LT(worst, 1e-3f) << prompt.tokens.size() << " tokens";
  }
}

// Of the peer's mean divergence from float32, what the fast path may have.
constexpr double kDivergenceShare = 0.6;

TEST_P(GoldenTest, TheFastPathIsNearerToFloat32ThanThePeer) {
  const auto forced = golden::ReadForced(Golden("forced", ".bin"));
  ASSERT_TRUE(forced.ok()) << forced.status();
  std::ifstream peer_file("tests/golden/forced_peer.json");
  const auto peers = nlohmann::json::parse(peer_file, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(peers.is_object() && peers.contains(GetParam().name));
  const auto& peer = peers[GetParam().name];

  LogitsModel model(GetParam().file, /*reference=*/false, KvType::kF16);
  std::vector<uint32_t> rows(forced->tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  uint32_t agreed = 0;
  double divergence = 0;
  model.Run(forced->tokens, rows, [&](uint32_t index, absl::Span<const float> logits) {
    const golden::TopLogits& expected = forced->rows[index];
    const size_t best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    if (best == expected.ids[0]) ++agreed;
    divergence += golden::BucketedKl(expected, logits);
  });
  const double count = static_cast<double>(rows.size());
  RecordProperty("argmax_agreement", std::to_string(agreed / count));
  RecordProperty("kl_mean", std::to_string(divergence / count));
  EXPECT_GE(agreed / count, peer["argmax_agreement"].get<double>());
  EXPECT_LE(divergence / count, kDivergenceShare * peer["kl_mean"].get<double>());
}

// A wider gap between float32's two best logits is a decision that an engine should make too.
constexpr float kDecidedGap = 0.25f;

// Answers may part from the peer's where float32 is undecided, or where the peer left float32 and we did not.
// Of other partings there are no more than of steps at which the peer itself decides against float32.
TEST_P(GoldenTest, GreedyAnswersLeaveThePeerOnlyForFloat32OrWhereItIsUndecided) {
  const auto cases = golden::ReadGreedy(Golden("greedy", ".jsonl"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_FALSE(cases->empty());
  EngineOptions options;
  options.model_path = ModelPath(GetParam().file);
  options.threads = kThreads;
  options.context_tokens = kContext;
  options.kv_bytes = uint64_t{512} << 20;
  auto loaded = LoadEngine(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Engine& engine = **loaded;

  // All cases in one batch.
  struct Run {
    std::vector<TokenId> tokens;
    uint32_t computed = 0;
    std::unique_ptr<Sampler> sampler;
    SequenceKv kv;
  };
  std::vector<Run> runs(cases->size());
  for (size_t i = 0; i < runs.size(); ++i) {
    const golden::GreedyCase& c = (*cases)[i];
    SamplingParams params;
    params.temperature = 0;
    runs[i].tokens = c.prompt;
    runs[i].sampler =
        std::make_unique<Sampler>(params, engine.info().vocab_size, c.prompt, std::vector<TokenId>());
    runs[i].kv = *engine.kv().Reserve(static_cast<uint32_t>(c.prompt.size() + c.tokens.size()));
    runs[i].kv.Activate();
  }
  const size_t steps = cases->front().tokens.size();
  for (size_t step = 0; step < steps; ++step) {
    StepPlan plan;
    for (Run& run : runs) {
      SequenceStep part;
      part.phase = step == 0 ? Phase::kPrefill : Phase::kDecode;
      part.tokens = absl::MakeConstSpan(run.tokens).subspan(run.computed);
      part.position = run.computed;
      part.kv = &run.kv;
      part.sampler = run.sampler.get();
      plan.sequences.push_back(part);
    }
    const StepResult result = engine.Execute(plan, nullptr);
    for (size_t i = 0; i < runs.size(); ++i) {
      ASSERT_TRUE(result.sequences[i].sampled.has_value());
      runs[i].computed = static_cast<uint32_t>(runs[i].tokens.size());
      runs[i].tokens.push_back(result.sequences[i].sampled->id);
    }
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const golden::GreedyCase& c = (*cases)[i];
    const auto ours = absl::MakeConstSpan(runs[i].tokens).subspan(c.prompt.size());
    const size_t parting = std::mismatch(ours.begin(), ours.end(), c.tokens.begin()).first - ours.begin();
    if (parting == ours.size() || ours[parting] == c.f32_first[parting]) continue;
    EXPECT_LT(c.f32_gap[parting], kDecidedGap) << "prompt " << i << " left float32 at token " << parting;
  }
}

}  // namespace
}  // namespace baton
