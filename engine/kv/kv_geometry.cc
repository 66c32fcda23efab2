#include "engine/kv/kv_geometry.h"

#include <algorithm>
#include <bit>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace baton {
namespace {

// Far above any model, far below where products of them overflow 64 bits.
constexpr uint32_t kMaxHeads = 1 << 16;
constexpr uint32_t kMaxHeadDim = 1 << 16;
constexpr size_t kMaxLayers = 1 << 16;

absl::Status CheckGroup(size_t index, const CacheGroup& group) {
  const auto invalid = [index](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("cache group ", index, ": ", what));
  };
  if (group.layers.empty() || group.layers.size() > kMaxLayers) {
    return invalid(absl::StrCat(group.layers.size(), " layers, must be in [1, ", kMaxLayers, "]"));
  }
  if (group.kv_heads == 0 || group.kv_heads > kMaxHeads) {
    return invalid(absl::StrCat("kv_heads is ", group.kv_heads, ", must be in [1, ", kMaxHeads, "]"));
  }
  if (group.head_dim == 0 || group.head_dim > kMaxHeadDim) {
    return invalid(absl::StrCat("head_dim is ", group.head_dim, ", must be in [1, ", kMaxHeadDim, "]"));
  }
  for (size_t i = 1; i < group.layers.size(); ++i) {
    if (group.layers[i] <= group.layers[i - 1]) {
      return invalid(absl::StrCat("layer ", group.layers[i], " follows ", group.layers[i - 1]));
    }
  }
  return absl::OkStatus();
}

uint64_t CeilDiv(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

// "0-3,8": runs of consecutive layers.
std::string LayersText(const std::vector<uint32_t>& layers) {
  std::string text;
  for (size_t first = 0; first < layers.size();) {
    size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", layers[first]);
    if (last > first) absl::StrAppend(&text, "-", layers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

uint32_t KvTypeBytes(KvType type) { return type == KvType::kF32 ? 4 : 2; }

const char* KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBF16:
      return "bf16";
  }
  BATON_CHECK(false);
}

absl::Status KvGeometry::Check() const {
  if (!std::has_single_bit(block_tokens) || block_tokens > kMaxBlockTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_tokens is ", block_tokens, ", must be a power of two up to ", kMaxBlockTokens));
  }
  if (groups.empty()) return absl::InvalidArgumentError("a KV geometry without cache groups");
  std::set<uint32_t> seen;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (absl::Status status = CheckGroup(i, groups[i]); !status.ok()) return status;
    for (const uint32_t layer : groups[i].layers) {
      if (!seen.insert(layer).second) {
        return absl::InvalidArgumentError(absl::StrCat("layer ", layer, " is in two cache groups"));
      }
    }
  }
  return absl::OkStatus();
}

uint64_t KvGeometry::token_bytes(uint32_t group) const {
  return uint64_t{2} * groups[group].kv_heads * groups[group].head_dim * KvTypeBytes(type);
}

uint64_t KvGeometry::plane_bytes(uint32_t group) const { return token_bytes(group) * block_tokens; }

uint64_t KvGeometry::block_bytes(uint32_t group) const {
  return plane_bytes(group) * groups[group].layers.size();
}

uint32_t KvGeometry::BlocksFor(uint32_t group, uint32_t tokens, uint32_t max_step_tokens) const {
  const uint64_t all = CeilDiv(tokens, block_tokens);
  const uint32_t window = groups[group].window_tokens;
  if (window == 0) return static_cast<uint32_t>(all);
  // While a step runs, the first of its rows still reads window - 1 tokens before it, and the last row is
  // being written.
  const uint64_t live = uint64_t{window} - 1 + std::max<uint32_t>(max_step_tokens, 1);
  // The most blocks that so many consecutive tokens can touch: the first may be the last of its block.
  const uint64_t rolling = CeilDiv(live - 1, block_tokens) + 1;
  return static_cast<uint32_t>(std::min(all, rolling));
}

TokenRange KvGeometry::NeededAfter(uint32_t group, uint32_t tokens) const {
  const uint32_t window = groups[group].window_tokens;
  if (window == 0 || tokens < window) return {0, tokens};
  return {tokens - (window - 1), tokens};
}

LayerRange KvGeometry::LayersOf(uint32_t group, LayerRange model_layers) const {
  const std::vector<uint32_t>& layers = groups[group].layers;
  const auto index = [&layers](uint32_t layer) {
    return static_cast<uint32_t>(std::lower_bound(layers.begin(), layers.end(), layer) - layers.begin());
  };
  const LayerRange range{index(model_layers.begin), index(model_layers.end)};
  return range.empty() ? LayerRange{} : range;
}

std::string KvGeometry::LayoutId() const {
  std::string id = KvTypeName(type);
  for (const CacheGroup& group : groups) {
    absl::StrAppend(&id, ";layers=", LayersText(group.layers), ",kv_heads=", group.kv_heads,
                    ",head_dim=", group.head_dim, ",window=", group.window_tokens);
  }
  return id;
}

}  // namespace baton
