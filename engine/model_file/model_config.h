#ifndef BATON_ENGINE_MODEL_FILE_MODEL_CONFIG_H_
#define BATON_ENGINE_MODEL_FILE_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model_file/model_file.h"

namespace baton {

enum class Architecture { kLlama, kGemma3 };

// The hyperparameters of a model, read from its file and checked for sense (every count > 0 and within a sane
// limit, head counts divide, sizes agree with the tensors' shapes).
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  std::string name;  // general.name, or the architecture when absent
  uint32_t vocab_size = 0;
  uint32_t context_tokens = 0;  // the context that the model was trained for
  uint32_t layers = 0;
  uint32_t hidden = 0;  // d_model
  uint32_t feed_forward = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;   // of K and V alike
  uint32_t rope_dims = 0;  // dimensions that rotate, <= head_dim
  float norm_epsilon = 0;
  float rope_base = 0;          // full-attention layers
  float rope_base_sliding = 0;  // sliding-window layers
  float rope_scale = 1;         // positions are multiplied by this on full-attention layers (linear scaling)
  std::vector<float>
      rope_divisors;           // of each pair's frequency, [rope_dims / 2]; empty = 1 (Llama 3.1's scaling)
  uint32_t window_tokens = 0;  // sliding window; 0 = no layer slides
  std::vector<bool> layer_slides;  // [layers]
  bool tied_head = false;          // no output.weight: the head is the embedding
  float attention_scale = 0;       // factor on q . k
  float embedding_scale = 1;       // gemma: sqrt(hidden)
};

absl::StatusOr<ModelConfig> ReadModelConfig(const ModelFile& file);

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_MODEL_CONFIG_H_
