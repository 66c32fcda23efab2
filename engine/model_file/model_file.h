#ifndef BATON_ENGINE_MODEL_FILE_MODEL_FILE_H_
#define BATON_ENGINE_MODEL_FILE_MODEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/model_file/tensor_type.h"

namespace baton {

// One tensor of a mapped file. `data` points into the mapping and lives as long as the ModelFile.
struct TensorView {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<uint64_t> dims;        // innermost first; a matrix is {columns, rows}, rows contiguous
  absl::Span<const std::byte> data;  // exactly dims' product elements; starts at a multiple of 8 bytes
};

// A GGUF file (versions 2 and 3), mapped read-only. Open checks every count, length, type, dimension, product
// and offset against the size of the file in 64 bits, so that nothing later can read outside of the mapping;
// a file that fails a check is answered with INVALID_ARGUMENT and a text that names the field, the value and
// the limit. Immutable after Open; any number of threads may read it. Replacing the file by rename is safe
// while it is open; truncating it in place is not (the kernel then ends the process at the next read of a
// lost page).
class ModelFile {
 public:
  // NOT_FOUND when there is no such file, INVALID_ARGUMENT when it is not a well-formed GGUF file.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Open(const std::string& path);
  // The same over bytes that the caller keeps alive (tests, fuzzing), aligned to at least 8.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Parse(absl::Span<const std::byte> bytes);

  virtual ~ModelFile() = default;

  // Metadata by key. nullopt when the key is absent or has another type; integers of every width and both
  // signs convert to uint64_t when the value fits. Arrays likewise, element by element.
  virtual std::optional<uint64_t> GetUint(std::string_view key) const = 0;
  virtual std::optional<double> GetFloat(std::string_view key) const = 0;
  virtual std::optional<bool> GetBool(std::string_view key) const = 0;
  virtual std::optional<std::string_view> GetString(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::string_view>> GetStrings(std::string_view key) const = 0;
  virtual std::optional<std::vector<int64_t>> GetInts(std::string_view key) const = 0;
  virtual std::optional<std::vector<float>> GetFloats(std::string_view key) const = 0;
  virtual std::optional<std::vector<bool>> GetBools(std::string_view key) const = 0;

  virtual absl::Span<const TensorView> tensors() const = 0;
  virtual const TensorView* FindTensor(std::string_view name) const = 0;

  // XXH3-128 over every byte of the file as lower-case hex: the identity of the weights and the tokenizer in
  // a fingerprint. Computed once, on first use, which reads the whole file.
  virtual const std::string& content_hash() const = 0;
  virtual uint64_t size_bytes() const = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_MODEL_FILE_H_
