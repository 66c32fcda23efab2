#ifndef BATON_ENGINE_MODEL_FILE_GGUF_WRITER_H_
#define BATON_ENGINE_MODEL_FILE_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/model_file/tensor_type.h"

namespace baton {

// Writes a GGUF v3 file: metadata in the order of the Add calls, then the tensors in theirs. It does not look
// for duplicate keys, so that tests can write files that a reader must refuse. Used by one thread.
class GgufWriter {
 public:
  // `alignment`, a power of two, is where each tensor's data begins; it is written as metadata unless it
  // is 32.
  explicit GgufWriter(uint32_t alignment = 32);

  void AddUint(std::string_view key, uint64_t value);  // u32 where the value fits, else u64
  void AddInt(std::string_view key, int32_t value);
  void AddFloat(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, absl::Span<const std::string> values);
  void AddInts(std::string_view key, absl::Span<const int32_t> values);
  void AddFloats(std::string_view key, absl::Span<const float> values);
  void AddBools(std::string_view key, const std::vector<bool>& values);

  // `dims` innermost first; `bytes` must be exactly what `type` and `dims` need.
  void AddTensor(std::string_view name, TensorType type, absl::Span<const uint64_t> dims,
                 absl::Span<const std::byte> bytes);
  void AddTensor(std::string_view name, absl::Span<const uint64_t> dims, absl::Span<const float> values);

  // The whole file. The writer may be added to afterwards.
  std::vector<std::byte> Serialize() const;

  // Writes the file under a temporary name beside `path` and renames it.
  absl::Status WriteFile(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    TensorType type = TensorType::kF32;
    std::vector<uint64_t> dims;
    std::vector<std::byte> bytes;
  };

  void BeginValue(std::string_view key, uint32_t type);
  void BeginArray(std::string_view key, uint32_t element_type, uint64_t count);

  const uint32_t alignment_;
  uint64_t key_count_ = 0;
  std::string metadata_;  // the keys and values as they stand in the file
  std::vector<Tensor> tensors_;
};

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_GGUF_WRITER_H_
