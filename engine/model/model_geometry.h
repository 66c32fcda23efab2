#ifndef BATON_ENGINE_MODEL_MODEL_GEOMETRY_H_
#define BATON_ENGINE_MODEL_MODEL_GEOMETRY_H_

#include <cstdint>
#include <vector>

#include "engine/kv/kv_geometry.h"
#include "engine/model_file/model_config.h"

namespace baton {

// The cache groups of a model: its full-attention layers, then its sliding ones; a kind that it lacks has no
// group.
KvGeometry GeometryOf(const ModelConfig& config, KvType type, uint32_t block_tokens);

// Where a layer's KV lives.
struct LayerPlace {
  uint32_t group = 0;
  uint32_t layer = 0;  // within the group
};

// [layers of the model]
std::vector<LayerPlace> PlacesOf(const KvGeometry& geometry);

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_MODEL_GEOMETRY_H_
