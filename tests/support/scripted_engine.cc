#include "tests/support/scripted_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/check.h"

namespace baton {
namespace {

constexpr uint32_t kLayers = 4;
constexpr uint32_t kHeads = 2;
constexpr uint32_t kHeadDim = 4;  // of f32: 16 bytes, two digests

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x7F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// What stands in plane `v` (0: K, 1: V), head, half of a token's KV.
uint64_t Digest(TokenId token, uint32_t position, uint32_t layer, uint32_t v, uint32_t head, uint32_t half) {
  return Mix(Mix(Mix(token + 1, position), layer * 8 + v * 4 + head * 2 + half), 7);
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

// Address of half a head's K or V of one token.
std::byte* Cell(const KvPools& pools, const SequenceKv& kv, uint32_t group, uint32_t layer, uint32_t position,
                uint32_t v, uint32_t head, uint32_t half) {
  const uint32_t block_tokens = pools.geometry().block_tokens;
  const absl::Span<const uint32_t> table = kv.table(group);
  const uint32_t block = table[(position / block_tokens) % table.size()];
  const DeviceSpan plane = pools.pool(group).plane(layer, block);
  const uint64_t row = (uint64_t{v} * kHeads + head) * block_tokens + position % block_tokens;
  return plane.data + row * kHeadDim * sizeof(float) + half * sizeof(uint64_t);
}

TokenId TokenOf(uint64_t hash, uint32_t end_every) {
  if (end_every > 0 && hash % end_every == 0) return ByteTokenizer::kEnd;
  return static_cast<TokenId>('a' + (hash >> 20) % 26);
}

// Calls `use` with (layer of the model, group, layer of the group, position) for all that a row at `position`
// attends to.
template <typename Use>
void ForAttended(const KvGeometry& geometry, uint32_t position, Use use) {
  for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
    const uint32_t window = geometry.groups[group].window_tokens;
    const uint32_t begin = window == 0 || position + 1 < window ? 0 : position + 1 - window;
    for (uint32_t layer = 0; layer < geometry.groups[group].layers.size(); ++layer) {
      for (uint32_t at = begin; at <= position; ++at)
        use(geometry.groups[group].layers[layer], group, layer, at);
    }
  }
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
          for (uint32_t cell = 0; cell < 8; ++cell) {
            const uint32_t v = cell / 4, head = cell / 2 % 2, half = cell % 2;
            const uint64_t digest = Digest(step.tokens[row], position, model_layer, v, head, half);
            std::memcpy(Cell(*pools_, *step.kv, group, layer, position, v, head, half), &digest,
                        sizeof(digest));
          }
        }
      }
    }
  }
}

SampledToken ScriptedEngine::SampleOne(const SequenceStep& step) const {
  const uint32_t position = step.position + static_cast<uint32_t>(step.tokens.size()) - 1;
  uint64_t hash = position;
  ForAttended(pools_->geometry(), position, [&](uint32_t, uint32_t group, uint32_t layer, uint32_t at) {
    for (uint32_t cell = 0; cell < 8; ++cell) {
      uint64_t digest;
      std::memcpy(&digest, Cell(*pools_, *step.kv, group, layer, at, cell / 4, cell / 2 % 2, cell % 2),
                  sizeof(digest));
      hash = Mix(hash, digest);
    }
  });
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
                                                    const std::vector<TokenId>& prompt, uint32_t max_tokens) {
  const KvGeometry geometry = Geometry(options);
  std::vector<TokenId> tokens = prompt;
  while (tokens.size() < prompt.size() + max_tokens) {
    const uint32_t position = static_cast<uint32_t>(tokens.size()) - 1;
    uint64_t hash = position;
    ForAttended(geometry, position, [&](uint32_t model_layer, uint32_t, uint32_t, uint32_t at) {
      for (uint32_t cell = 0; cell < 8; ++cell) {
        hash = Mix(hash, Digest(tokens[at], at, model_layer, cell / 4, cell / 2 % 2, cell % 2));
      }
    });
    tokens.push_back(TokenOf(hash, options.end_every));
    if (tokens.back() == ByteTokenizer::kEnd) break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace baton
