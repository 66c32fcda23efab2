#include "engine/model/model_geometry.h"

#include <utility>

namespace baton {

KvGeometry GeometryOf(const ModelConfig& config, KvType type, uint32_t block_tokens) {
  CacheGroup full{.kv_heads = config.kv_heads, .head_dim = config.head_dim};
  CacheGroup sliding = full;
  sliding.window_tokens = config.window_tokens;
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    (config.layer_slides[layer] ? sliding : full).layers.push_back(layer);
  }
  KvGeometry geometry{.type = type, .block_tokens = block_tokens};
  for (CacheGroup* group : {&full, &sliding}) {
    if (!group->layers.empty()) geometry.groups.push_back(std::move(*group));
  }
  return geometry;
}

std::vector<LayerPlace> PlacesOf(const KvGeometry& geometry) {
  size_t layers = 0;
  for (const CacheGroup& group : geometry.groups) layers += group.layers.size();
  std::vector<LayerPlace> places(layers);
  for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
    for (uint32_t i = 0; i < geometry.groups[group].layers.size(); ++i) {
      places[geometry.groups[group].layers[i]] = {group, i};
    }
  }
  return places;
}

}  // namespace baton
