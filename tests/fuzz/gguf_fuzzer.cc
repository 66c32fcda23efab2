// A model file from anywhere: whatever Parse accepts can be read, dequantized and configured without leaving
// its bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/check.h"
#include "engine/model_file/dequantize.h"
#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"

namespace baton {
namespace {

void ReadTensors(const ModelFile& file) {
  std::vector<float> values;
  for (const TensorView& tensor : file.tensors()) {
    const TensorTypeTraits traits = TraitsOf(tensor.type);
    BATON_CHECK(tensor.data.size() % traits.bytes == 0);
    values.resize(tensor.data.size() / traits.bytes * traits.elements);
    Dequantize(tensor.type, tensor.data, absl::MakeSpan(values));
    BATON_CHECK(file.FindTensor(tensor.name) == &tensor);
  }
}

// Every getter against keys of every type in the corpus.
void ReadMetadata(const ModelFile& file) {
  for (const char* key : {"u", "i", "f", "b", "s", "as", "ai", "af", "ab", "general.architecture",
                          "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    file.GetUint(key);
    file.GetFloat(key);
    file.GetBool(key);
    file.GetString(key);
    file.GetStrings(key);
    file.GetInts(key);
    file.GetFloats(key);
    file.GetBools(key);
  }
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);  // aligned, and its end is the sanitizer's to watch
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const auto file = baton::ModelFile::Parse(bytes);
  if (!file.ok()) {
    BATON_CHECK(file.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  baton::ReadTensors(**file);
  baton::ReadMetadata(**file);
  if (const auto config = baton::ReadModelConfig(**file); config.ok()) {
    BATON_CHECK(config->layer_slides.size() == config->layers);
    BATON_CHECK(config->heads % config->kv_heads == 0);
  }
  BATON_CHECK((*file)->content_hash().size() == 32);
  return 0;
}
