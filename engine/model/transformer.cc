#include "engine/model/transformer.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "common/check.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// Rows of logits that are computed at once: a vocabulary of 262,144 needs 1 MiB for each.
constexpr uint64_t kLogitsBytes = uint64_t{32} << 20;

// Loads the tensors of one layer and keeps what it loaded.
class LayerLoader {
 public:
  LayerLoader(const ModelFile& file, Ops* ops, uint32_t layer, std::vector<std::unique_ptr<Weight>>* owned)
      : file_(file), ops_(ops), prefix_(StrCat("blk.", layer, ".")), owned_(owned) {}

  absl::StatusOr<const Weight*> Matrix(std::initializer_list<std::string_view> names) {
    std::vector<const TensorView*> parts;
    for (std::string_view name : names) {
      ASSIGN_OR_RETURN(const TensorView* part, Find(name));
      parts.push_back(part);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<Weight> weight, ops_->LoadMatrix(parts));
    return Keep(std::move(weight));
  }

  absl::StatusOr<const Weight*> Vector(std::string_view name) {
    ASSIGN_OR_RETURN(const TensorView* tensor, Find(name));
    ASSIGN_OR_RETURN(std::unique_ptr<Weight> weight, ops_->LoadVector(*tensor));
    return Keep(std::move(weight));
  }

 private:
  absl::StatusOr<const TensorView*> Find(std::string_view name) {
    const std::string full = StrCat(prefix_, name, ".weight");
    const TensorView* const tensor = file_.FindTensor(full);
    if (tensor == nullptr) return absl::InvalidArgumentError(StrCat("tensor ", full, " is missing"));
    return tensor;
  }

  const Weight* Keep(std::unique_ptr<Weight> weight) {
    owned_->push_back(std::move(weight));
    return owned_->back().get();
  }

  const ModelFile& file_;
  Ops* const ops_;
  const std::string prefix_;
  std::vector<std::unique_ptr<Weight>>* const owned_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Load(const ModelFile& file,
                                                               const ModelConfig& config, Device* device,
                                                               Ops* ops, uint32_t max_rows) {
  std::unique_ptr<Transformer> transformer(new Transformer(config, device, ops));
  RETURN_IF_ERROR(transformer->LoadWeights(file));
  RETURN_IF_ERROR(transformer->AllocateActivations(max_rows));
  return transformer;
}

absl::StatusOr<Transformer::Layer> Transformer::LoadLayer(const ModelFile& file, uint32_t index) {
  Layer layer;
  LayerLoader loader(file, ops_, index, &layer.owned);
  AttentionWeights& attention = layer.attention;
  MlpWeights& mlp = layer.mlp;
  ASSIGN_OR_RETURN(attention.norm, loader.Vector("attn_norm"));
  ASSIGN_OR_RETURN(attention.qkv, loader.Matrix({"attn_q", "attn_k", "attn_v"}));
  ASSIGN_OR_RETURN(attention.output, loader.Matrix({"attn_output"}));
  ASSIGN_OR_RETURN(mlp.norm, loader.Vector("ffn_norm"));
  ASSIGN_OR_RETURN(mlp.gate_up, loader.Matrix({"ffn_gate", "ffn_up"}));
  ASSIGN_OR_RETURN(mlp.down, loader.Matrix({"ffn_down"}));
  if (config_.architecture == Architecture::kGemma3) {
    ASSIGN_OR_RETURN(attention.q_norm, loader.Vector("attn_q_norm"));
    ASSIGN_OR_RETURN(attention.k_norm, loader.Vector("attn_k_norm"));
    ASSIGN_OR_RETURN(attention.output_norm, loader.Vector("post_attention_norm"));
    ASSIGN_OR_RETURN(mlp.output_norm, loader.Vector("post_ffw_norm"));
    mlp.activation = GateActivation::kGeluTanh;
  }
  attention.heads = config_.heads;
  attention.scale = config_.attention_scale;
  attention.norm_epsilon = mlp.norm_epsilon = config_.norm_epsilon;
  const bool slides = config_.layer_slides[index];
  attention.rope = {.base = slides ? config_.rope_base_sliding : config_.rope_base,
                    .position_scale = slides ? 1.0f : config_.rope_scale,
                    .dims = config_.rope_dims,
                    .interleaved = config_.architecture == Architecture::kLlama,
                    .divisors = config_.rope_divisors};
  return layer;
}

absl::Status Transformer::LoadWeights(const ModelFile& file) {
  const TensorView* const embedding = file.FindTensor("token_embd.weight");
  const TensorView* const head = config_.tied_head ? embedding : file.FindTensor("output.weight");
  const TensorView* const output_norm = file.FindTensor("output_norm.weight");
  BATON_CHECK(embedding != nullptr && head != nullptr && output_norm != nullptr);  // ReadModelConfig saw them
  ASSIGN_OR_RETURN(embedding_, ops_->LoadTable(*embedding));
  for (uint32_t index = 0; index < config_.layers; ++index) {
    ASSIGN_OR_RETURN(Layer layer, LoadLayer(file, index));
    layers_.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(output_norm_, ops_->LoadVector(*output_norm));
  ASSIGN_OR_RETURN(head_matrix_, ops_->LoadMatrix({&head, 1}));
  head_ = {.norm = output_norm_.get(), .head = head_matrix_.get(), .norm_epsilon = config_.norm_epsilon};
  return absl::OkStatus();
}

absl::Status Transformer::AllocateActivations(uint32_t max_rows) {
  const uint64_t query_bytes = uint64_t{max_rows} * config_.heads * config_.head_dim * sizeof(float);
  const uint64_t logits_row_bytes = uint64_t{config_.vocab_size} * sizeof(float);
  logits_rows_ = static_cast<uint32_t>(std::clamp<uint64_t>(kLogitsBytes / logits_row_bytes, 1, max_rows));
  ASSIGN_OR_RETURN(hidden_, device_->Allocate(uint64_t{max_rows} * config_.hidden * sizeof(float)));
  ASSIGN_OR_RETURN(query_, device_->Allocate(query_bytes));
  ASSIGN_OR_RETURN(attended_, device_->Allocate(query_bytes));
  ASSIGN_OR_RETURN(logits_, device_->Allocate(logits_rows_ * logits_row_bytes));
  return ops_->Reserve({.rows = max_rows,
                        .hidden = config_.hidden,
                        .feed_forward = config_.feed_forward,
                        .qkv = (config_.heads + 2 * config_.kv_heads) * config_.head_dim});
}

void Transformer::Forward(const Batch& batch, const KvPools& pools,
                          absl::FunctionRef<void(uint32_t layer)> kv_written) {
  const KvGeometry& geometry = pools.geometry();
  const std::vector<LayerPlace> places = PlacesOf(geometry);
  BATON_CHECK(places.size() == layers_.size());
  ops_->BeginStep(batch);
  ops_->Embed(*embedding_, config_.embedding_scale, hidden_.span());
  for (uint32_t index = 0; index < layers_.size(); ++index) {
    const Layer& layer = layers_[index];
    const CacheGroup& group = geometry.groups[places[index].group];
    const BlockPool& pool = pools.pool(places[index].group);
    const uint64_t plane_bytes = geometry.plane_bytes(places[index].group);
    const KvLayer kv = {.planes = {pool.layer_planes(places[index].layer).data, pool.blocks() * plane_bytes},
                        .plane_bytes = plane_bytes,
                        .group = places[index].group,
                        .type = geometry.type,
                        .kv_heads = group.kv_heads,
                        .head_dim = group.head_dim,
                        .block_tokens = geometry.block_tokens,
                        .window_tokens = group.window_tokens};
    ops_->AttentionInput(layer.attention, kv, hidden_.span(), query_.span());
    kv_written(index);
    ops_->Attention(layer.attention, kv, query_.span(), attended_.span());
    ops_->AttentionOutput(layer.attention, attended_.span(), hidden_.span());
    ops_->Mlp(layer.mlp, hidden_.span());
  }
}

void Transformer::Logits(absl::Span<const uint32_t> rows, absl::Span<float> out) {
  BATON_CHECK(rows.size() <= logits_rows_ && out.size() == rows.size() * config_.vocab_size);
  ops_->Head(head_, rows, hidden_.span(), logits_.span());
  device_->CopyToHost(logits_.span().subspan(0, out.size() * sizeof(float)),
                      absl::MakeSpan(reinterpret_cast<std::byte*>(out.data()), out.size() * sizeof(float)));
}

}  // namespace baton
