#include "tests/support/scripted_engine.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "common/check.h"

namespace baton {
namespace {

constexpr uint32_t kLayers = 4;
constexpr uint32_t kHeads = 2;
constexpr uint32_t kHeadDim = 4;             // of f32: 16 bytes, two digests
constexpr uint32_t kCells = 2 * kHeads * 2;  // of one token in one layer: (K or V, head, half)

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x7F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// What stands in a cell of a token's KV in one layer.
uint64_t Digest(TokenId token, uint32_t position, uint32_t layer, uint32_t cell) {
  return Mix(Mix(token + 1, position), layer * kCells + cell);
}

KvGeometry Geometry(const ScriptedEngine::Options& options) {
  KvGeometry geometry;
  geometry.type = KvType::kF32;
  geometry.block_tokens = options.block_tokens;
  geometry.groups = {
      {.layers = {0, 2}, .kv_heads = kHeads, .head_dim = kHeadDim},
      {.layers = {1, 3}, .kv_heads = kHeads, .head_dim = kHeadDim, .window_tokens = options.window_tokens}};
  return geometry;
}

// Where a token's KV of one layer is: `use(cell, address)` for each half of each head's K and V.
template <typename Use>
void ForCells(const KvPools& pools, const SequenceKv& kv, uint32_t group, uint32_t layer, uint32_t position,
              Use use) {
  const uint32_t block_tokens = pools.geometry().block_tokens;
  const absl::Span<const uint32_t> table = kv.table(group);
  const uint32_t block = table[(position / block_tokens) % table.size()];
  std::byte* const plane = pools.pool(group).plane(layer, block).data;
  for (uint32_t cell = 0; cell < kCells; ++cell) {
    const uint64_t row = uint64_t{cell / 2} * block_tokens + position % block_tokens;
    use(cell, plane + row * kHeadDim * sizeof(float) + cell % 2 * sizeof(uint64_t));
  }
}

// How much a cell counts in the sum over all that is attended to.
uint64_t Weight(uint32_t layer, uint32_t position, uint32_t cell) {
  return (uint64_t{position} * kLayers * kCells + layer * kCells + cell) * 2 + 1;
}

TokenId TokenOf(uint64_t hash, uint32_t end_every) {
  if (end_every > 0 && hash % end_every == 0) return ByteTokenizer::kEnd;
  return static_cast<TokenId>('a' + (hash >> 20) % 26);
}

// Letters are about equally likely, the end as its option says.
SampledToken Draw(const ScriptedEngine::Options& options, uint64_t hash, uint32_t index, Sampler& sampler,
                  std::optional<uint32_t> logprobs) {
  constexpr float kSpread = 4;
  constexpr float kLettersWeigh = 350;  // the expected sum of exp(logit) over the letters
  std::array<float, ByteTokenizer::kVocabulary> logits;
  logits.fill(-std::numeric_limits<float>::infinity());
  for (uint32_t letter = 0; letter < 26; ++letter) {
    logits['a' + letter] = kSpread * static_cast<float>(Mix(hash, letter) % 1024) / 1024;
  }
  if (options.end_every > 0) {
    logits[ByteTokenizer::kEnd] = std::log(kLettersWeigh / static_cast<float>(options.end_every));
  }
  return sampler.Sample(absl::MakeSpan(logits), index, logprobs);
}

uint32_t AttendsFrom(uint32_t window, uint32_t position) {
  return window == 0 || position + 1 < window ? 0 : position + 1 - window;
}

}  // namespace

ScriptedEngine::ScriptedEngine(const Options& options) : options_(options), device_(CreateCpuDevice()) {
  absl::StatusOr<std::unique_ptr<KvPools>> pools = KvPools::Create(
      device_.get(), Geometry(options), options.kv_bytes, options.context_tokens, options.max_step_tokens);
  BATON_CHECK(pools.ok());
  pools_ = *std::move(pools);
  info_.model_name = "scripted";
  info_.fingerprint = "scripted/" + pools_->geometry().LayoutId();
  info_.prefill_recipe = info_.decode_recipe = "scripted";
  info_.vocab_size = ByteTokenizer::kVocabulary;
  info_.context_tokens = options.context_tokens;
  info_.layers = kLayers;
  info_.layer_ranges = {{0, 2}, {2, 4}};
}

StepResult ScriptedEngine::Execute(const StepPlan& plan, const LayersDone& layers_done) {
  for (const LayerRange& layers : info_.layer_ranges) {
    ComputeLayers(plan, layers);
    if (layers_done) layers_done(layers);
  }
  return Sample(plan);
}

void ScriptedEngine::ComputeLayers(const StepPlan& plan, LayerRange layers) {
  for (const SequenceStep& step : plan.sequences) {
    BATON_CHECK(step.tokens.size() <= pools_->max_step_tokens());
    for (uint32_t group = 0; group < pools_->groups(); ++group) {
      const LayerRange within = pools_->geometry().LayersOf(group, layers);
      for (uint32_t layer = within.begin; layer < within.end; ++layer) {
        const uint32_t model_layer = pools_->geometry().groups[group].layers[layer];
        for (uint32_t row = 0; row < step.tokens.size(); ++row) {
          const uint32_t position = step.position + row;
          ForCells(*pools_, *step.kv, group, layer, position, [&](uint32_t cell, std::byte* address) {
            const uint64_t digest = Digest(step.tokens[row], position, model_layer, cell);
            std::memcpy(address, &digest, sizeof(digest));
          });
        }
      }
    }
  }
}

SampledToken ScriptedEngine::SampleOne(const SequenceStep& step) const {
  const uint32_t position = step.position + static_cast<uint32_t>(step.tokens.size()) - 1;
  uint64_t sum = 0;
  for (uint32_t group = 0; group < pools_->groups(); ++group) {
    const CacheGroup& attends = pools_->geometry().groups[group];
    for (uint32_t layer = 0; layer < attends.layers.size(); ++layer) {
      for (uint32_t at = AttendsFrom(attends.window_tokens, position); at <= position; ++at) {
        ForCells(*pools_, *step.kv, group, layer, at, [&](uint32_t cell, const std::byte* address) {
          uint64_t digest;
          std::memcpy(&digest, address, sizeof(digest));
          sum += digest * Weight(attends.layers[layer], at, cell);
        });
      }
    }
  }
  const uint64_t hash = Mix(position, sum);
  if (options_.samples) return Draw(options_, hash, position + 1, *step.sampler, step.logprobs);
  SampledToken sampled{TokenOf(hash, options_.end_every), -1.0f, {}};
  for (uint32_t i = 0; i < step.logprobs.value_or(0); ++i) {
    sampled.top.push_back({static_cast<TokenId>('a' + i), -1.0f - static_cast<float>(hash % 97) - i});
  }
  return sampled;
}

StepResult ScriptedEngine::Sample(const StepPlan& plan) const {
  StepResult result;
  for (const SequenceStep& step : plan.sequences) {
    SequenceResult& sequence = result.sequences.emplace_back();
    if (step.sampler != nullptr) sequence.sampled = SampleOne(step);
    if (!step.prompt_logprobs) continue;
    for (size_t row = 0; row < step.tokens.size(); ++row) {
      const bool last = row + 1 == step.tokens.size();
      if (last && !step.next_token) continue;
      const TokenId next = last ? *step.next_token : step.tokens[row + 1];
      sequence.prompt_logprobs.push_back({next, -static_cast<float>(step.position + row + 1), {}});
    }
  }
  return result;
}

std::vector<TokenId> ScriptedEngine::ExpectedAnswer(const Options& options,
                                                    const std::vector<TokenId>& prompt, uint32_t max_tokens,
                                                    const SamplingParams& sampling) {
  const KvGeometry geometry = Geometry(options);
  std::vector<TokenId> tokens = prompt;
  Sampler sampler(sampling, ByteTokenizer::kVocabulary, prompt, {});
  // [cache group][position]: the sum over all positions before.
  std::vector<std::vector<uint64_t>> before(geometry.groups.size(), {0});
  while (tokens.size() < prompt.size() + max_tokens) {
    const uint32_t position = static_cast<uint32_t>(tokens.size()) - 1;
    uint64_t sum = 0;
    for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
      std::vector<uint64_t>& sums = before[group];
      for (uint32_t at = static_cast<uint32_t>(sums.size()) - 1; at <= position; ++at) {
        uint64_t own = 0;
        for (const uint32_t layer : geometry.groups[group].layers) {
          for (uint32_t cell = 0; cell < kCells; ++cell) {
            own += Digest(tokens[at], at, layer, cell) * Weight(layer, at, cell);
          }
        }
        sums.push_back(sums.back() + own);
      }
      sum += sums[position + 1] - sums[AttendsFrom(geometry.groups[group].window_tokens, position)];
    }
    const uint64_t hash = Mix(position, sum);
    tokens.push_back(options.samples ? Draw(options, hash, position + 1, sampler, std::nullopt).id
                                     : TokenOf(hash, options.end_every));
    sampler.Observe(tokens.back());
    if (tokens.back() == ByteTokenizer::kEnd) break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace baton
