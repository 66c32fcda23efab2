#include "engine/model_file/tensor_shapes.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/model_file/gguf_metadata.h"

namespace baton {
namespace {

struct Expected {
  std::string name;
  std::vector<uint64_t> dims;  // one dimension: a norm
};

void AddLayer(const ModelConfig& config, uint32_t layer, std::vector<Expected>& expected) {
  const uint64_t hidden = config.hidden;
  const uint64_t q = uint64_t{config.heads} * config.head_dim;
  const uint64_t kv = uint64_t{config.kv_heads} * config.head_dim;
  const auto add = [&](std::string_view name, std::vector<uint64_t> dims) {
    expected.push_back({StrCat("blk.", layer, ".", name, ".weight"), std::move(dims)});
  };
  add("attn_norm", {hidden});
  add("attn_q", {hidden, q});
  add("attn_k", {hidden, kv});
  add("attn_v", {hidden, kv});
  add("attn_output", {q, hidden});
  add("ffn_norm", {hidden});
  add("ffn_gate", {hidden, config.feed_forward});
  add("ffn_up", {hidden, config.feed_forward});
  add("ffn_down", {config.feed_forward, hidden});
  if (config.architecture == Architecture::kGemma3) {
    add("attn_q_norm", {config.head_dim});
    add("attn_k_norm", {config.head_dim});
    add("post_attention_norm", {hidden});
    add("post_ffw_norm", {hidden});
  }
}

std::vector<Expected> ExpectedTensors(const ModelConfig& config) {
  std::vector<Expected> expected;
  expected.push_back({"token_embd.weight", {config.hidden, config.vocab_size}});
  expected.push_back({"output_norm.weight", {config.hidden}});
  if (!config.tied_head) expected.push_back({"output.weight", {config.hidden, config.vocab_size}});
  if (!config.rope_divisors.empty()) expected.push_back({"rope_freqs.weight", {config.rope_divisors.size()}});
  for (uint32_t layer = 0; layer < config.layers; ++layer) AddLayer(config, layer, expected);
  return expected;
}

absl::Status CheckTensor(const ModelFile& file, const Expected& expected) {
  const TensorView* const tensor = file.FindTensor(expected.name);
  if (tensor == nullptr) return absl::InvalidArgumentError(StrCat("tensor ", expected.name, " is missing"));
  if (tensor->dims != expected.dims) {
    return absl::InvalidArgumentError(StrCat("tensor ", expected.name, " has the shape [",
                                             absl::StrJoin(tensor->dims, ", "), "], must have [",
                                             absl::StrJoin(expected.dims, ", "), "]"));
  }
  if (expected.dims.size() == 1 && tensor->type != TensorType::kF32) {
    return absl::UnimplementedError(
        StrCat("tensor ", expected.name, " is ", TraitsOf(tensor->type).name, ", supported is F32"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTensorShapes(const ModelFile& file, const ModelConfig& config) {
  const std::vector<Expected> expected = ExpectedTensors(config);
  absl::flat_hash_set<std::string_view> known;
  for (const Expected& tensor : expected) {
    RETURN_IF_ERROR(CheckTensor(file, tensor));
    known.insert(tensor.name);
  }
  for (const TensorView& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    return absl::UnimplementedError(
        StrCat("tensor ", Quoted(tensor.name), " has no place in this architecture as Baton computes it"));
  }
  return absl::OkStatus();
}

}  // namespace baton
