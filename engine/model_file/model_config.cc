#include "engine/model_file/model_config.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/model_file/tensor_shapes.h"

namespace baton {
namespace {

constexpr uint32_t kMaxLayers = 1024;
constexpr uint32_t kMaxHidden = 1 << 17;
constexpr uint32_t kMaxFeedForward = 1 << 20;
constexpr uint32_t kMaxHeads = 1024;
constexpr uint32_t kMaxHeadDim = 1024;
constexpr uint32_t kMaxContextTokens = 1 << 24;
constexpr uint32_t kMaxVocabulary = 1 << 22;
constexpr float kDefaultRopeBase = 10000.0f;
constexpr uint32_t kGemma3SlidingPattern = 6;  // the last of every six layers attends in full
constexpr uint32_t kGemma3LargestLayers = 62;  // the 27B model scales q . k by its hidden size per head

// Reads the keys "<architecture>.<name>".
class ConfigReader {
 public:
  ConfigReader(const ModelFile& file, std::string_view architecture) : file_(file), prefix_(architecture) {}

  std::string Key(std::string_view name) const { return StrCat(prefix_, ".", name); }

  absl::StatusOr<uint32_t> Count(std::string_view name, uint32_t limit,
                                 std::optional<uint32_t> fallback = {}) const {
    const std::string key = Key(name);
    std::optional<uint64_t> value = file_.GetUint(key);
    if (!value.has_value()) {
      if (file_.GetInts(key).has_value()) {
        return absl::UnimplementedError(StrCat(key, " differs by layer, which is not supported"));
      }
      if (!fallback.has_value()) return absl::InvalidArgumentError(StrCat(key, " is missing or not a count"));
      value = *fallback;
    }
    if (*value < 1 || *value > limit) {
      return absl::InvalidArgumentError(StrCat(key, " is ", *value, ", must be 1 to ", limit));
    }
    return static_cast<uint32_t>(*value);
  }

  absl::StatusOr<float> Positive(std::string_view name, double limit,
                                 std::optional<float> fallback = {}) const {
    const std::string key = Key(name);
    std::optional<double> value = file_.GetFloat(key);
    if (!value.has_value()) {
      if (!fallback.has_value())
        return absl::InvalidArgumentError(StrCat(key, " is missing or not a number"));
      value = *fallback;
    }
    if (!(*value > 0) || *value > limit) {
      return absl::InvalidArgumentError(StrCat(key, " is ", *value, ", must be above 0 and at most ", limit));
    }
    return static_cast<float>(*value);
  }

  // The factor on positions that `rope.scaling.*` asks for.
  absl::StatusOr<float> RopeScale() const {
    const std::string key = Key("rope.scaling.type");
    const std::string_view type = file_.GetString(key).value_or("none");
    if (type == "none") return 1.0f;
    if (type != "linear") {
      return absl::UnimplementedError(StrCat(key, " is \"", type, "\", supported are none and linear"));
    }
    ASSIGN_OR_RETURN(const float factor, Positive("rope.scaling.factor", 1e6));
    return 1.0f / factor;
  }

  absl::Status RefuseNonzero(std::string_view name) const {
    const std::string key = Key(name);
    const double value = file_.GetFloat(key).value_or(static_cast<double>(file_.GetUint(key).value_or(0)));
    if (value == 0) return absl::OkStatus();
    return absl::UnimplementedError(StrCat(key, " is ", value, ", which is not supported"));
  }

 private:
  const ModelFile& file_;
  const std::string prefix_;
};

absl::Status ReadHeads(const ConfigReader& reader, ModelConfig& config) {
  ASSIGN_OR_RETURN(config.heads, reader.Count("attention.head_count", kMaxHeads));
  ASSIGN_OR_RETURN(config.kv_heads, reader.Count("attention.head_count_kv", config.heads, config.heads));
  if (config.heads % config.kv_heads != 0) {
    return absl::InvalidArgumentError(StrCat(reader.Key("attention.head_count"), " is ", config.heads,
                                             ", must be a multiple of the ", config.kv_heads, " KV heads"));
  }
  ASSIGN_OR_RETURN(config.head_dim,
                   reader.Count("attention.key_length", kMaxHeadDim, config.hidden / config.heads));
  ASSIGN_OR_RETURN(const uint32_t value_dim,
                   reader.Count("attention.value_length", kMaxHeadDim, config.hidden / config.heads));
  if (value_dim != config.head_dim) {
    return absl::UnimplementedError(StrCat(reader.Key("attention.value_length"), " is ", value_dim,
                                           ", supported is only the ", config.head_dim, " of the keys"));
  }
  ASSIGN_OR_RETURN(config.rope_dims, reader.Count("rope.dimension_count", config.head_dim, config.head_dim));
  if (config.rope_dims % 2 != 0) {
    return absl::InvalidArgumentError(
        StrCat(reader.Key("rope.dimension_count"), " is ", config.rope_dims, ", must be even"));
  }
  return absl::OkStatus();
}

// Llama 3.1 and later stretch slow rotations by a factor of each pair, which the file holds as a tensor.
absl::Status ReadRopeDivisors(const ModelFile& file, ModelConfig& config) {
  const TensorView* const tensor = file.FindTensor("rope_freqs.weight");
  if (tensor == nullptr) return absl::OkStatus();
  if (tensor->type != TensorType::kF32 || tensor->dims != std::vector<uint64_t>{config.rope_dims / 2}) {
    return absl::InvalidArgumentError(
        StrCat("tensor rope_freqs.weight must be F32 and have the shape [", config.rope_dims / 2, "]"));
  }
  config.rope_divisors.resize(config.rope_dims / 2);
  std::memcpy(config.rope_divisors.data(), tensor->data.data(), config.rope_divisors.size() * sizeof(float));
  for (const float divisor : config.rope_divisors) {
    if (std::isfinite(divisor) && divisor > 0) continue;
    return absl::InvalidArgumentError(
        StrCat("tensor rope_freqs.weight has the element ", divisor, ", each must be finite and above 0"));
  }
  return absl::OkStatus();
}

absl::Status ReadSlidingLayers(const ModelFile& file, const ConfigReader& reader, ModelConfig& config) {
  config.layer_slides.assign(config.layers, false);
  const std::string window_key = reader.Key("attention.sliding_window");
  if (file.GetUint(window_key).value_or(0) == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(config.window_tokens, reader.Count("attention.sliding_window", kMaxContextTokens));

  const std::string pattern_key = reader.Key("attention.sliding_window_pattern");
  if (std::optional<std::vector<bool>> pattern = file.GetBools(pattern_key); pattern.has_value()) {
    if (pattern->size() != config.layers) {
      return absl::InvalidArgumentError(StrCat(pattern_key, " has ", pattern->size(), " elements, must have ",
                                               config.layers, ", one for each layer"));
    }
    config.layer_slides = *std::move(pattern);
    return absl::OkStatus();
  }
  const uint64_t period = file.GetUint(pattern_key).value_or(kGemma3SlidingPattern);
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    config.layer_slides[layer] = period == 0 || layer % period != period - 1;
  }
  return absl::OkStatus();
}

absl::Status ReadGemma3(const ModelFile& file, const ConfigReader& reader, ModelConfig& config) {
  RETURN_IF_ERROR(ReadSlidingLayers(file, reader, config));
  RETURN_IF_ERROR(reader.RefuseNonzero("final_logit_softcapping"));
  RETURN_IF_ERROR(reader.RefuseNonzero("attn_logit_softcapping"));
  ASSIGN_OR_RETURN(config.rope_base_sliding, reader.Positive("rope.freq_base_swa", 1e12, kDefaultRopeBase));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  if (config.layers == kGemma3LargestLayers) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.hidden / config.heads));
  }
  return absl::OkStatus();
}

absl::Status ReadVocabulary(const ModelFile& file, const ConfigReader& reader, ModelConfig& config) {
  const TensorView* const embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->dims.size() != 2) {
    return absl::InvalidArgumentError("tensor token_embd.weight is missing or not a matrix");
  }
  const uint64_t rows = embedding->dims[1];
  if (rows > kMaxVocabulary) {
    return absl::InvalidArgumentError(
        StrCat("token_embd.weight has ", rows, " rows, limit ", kMaxVocabulary));
  }
  config.vocab_size = static_cast<uint32_t>(rows);
  if (const auto declared = file.GetUint(reader.Key("vocab_size")); declared.value_or(rows) != rows) {
    return absl::InvalidArgumentError(
        StrCat(reader.Key("vocab_size"), " is ", *declared, ", token_embd.weight has ", rows, " rows"));
  }
  if (const auto tokens = file.GetStrings("tokenizer.ggml.tokens");
      tokens.has_value() && tokens->size() != rows) {
    return absl::InvalidArgumentError(StrCat("tokenizer.ggml.tokens has ", tokens->size(),
                                             " tokens, token_embd.weight has ", rows, " rows"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const ModelFile& file) {
  const std::optional<std::string_view> architecture = file.GetString("general.architecture");
  if (!architecture.has_value()) return absl::InvalidArgumentError("general.architecture is missing");
  ModelConfig config;
  if (*architecture == "llama") {
    config.architecture = Architecture::kLlama;
  } else if (*architecture == "gemma3") {
    config.architecture = Architecture::kGemma3;
  } else {
    return absl::UnimplementedError(
        StrCat("general.architecture is \"", *architecture, "\", supported are llama and gemma3"));
  }
  const ConfigReader reader(file, *architecture);
  config.name = file.GetString("general.name").value_or(*architecture);
  ASSIGN_OR_RETURN(config.context_tokens, reader.Count("context_length", kMaxContextTokens));
  ASSIGN_OR_RETURN(config.layers, reader.Count("block_count", kMaxLayers));
  ASSIGN_OR_RETURN(config.hidden, reader.Count("embedding_length", kMaxHidden));
  ASSIGN_OR_RETURN(config.feed_forward, reader.Count("feed_forward_length", kMaxFeedForward));
  RETURN_IF_ERROR(ReadHeads(reader, config));
  ASSIGN_OR_RETURN(config.norm_epsilon, reader.Positive("attention.layer_norm_rms_epsilon", 1));
  ASSIGN_OR_RETURN(config.rope_base, reader.Positive("rope.freq_base", 1e12, kDefaultRopeBase));
  ASSIGN_OR_RETURN(config.rope_scale, reader.RopeScale());
  RETURN_IF_ERROR(reader.RefuseNonzero("expert_count"));
  if (config.architecture == Architecture::kLlama) RETURN_IF_ERROR(ReadRopeDivisors(file, config));
  config.rope_base_sliding = config.rope_base;
  config.layer_slides.assign(config.layers, false);
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  config.tied_head = file.FindTensor("output.weight") == nullptr;
  if (config.architecture == Architecture::kGemma3) RETURN_IF_ERROR(ReadGemma3(file, reader, config));
  RETURN_IF_ERROR(ReadVocabulary(file, reader, config));
  RETURN_IF_ERROR(CheckTensorShapes(file, config));
  return config;
}

}  // namespace baton
