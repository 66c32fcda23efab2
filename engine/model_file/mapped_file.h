#ifndef BATON_ENGINE_MODEL_FILE_MAPPED_FILE_H_
#define BATON_ENGINE_MODEL_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace baton {

// A whole file, mapped read-only; unmapped when destroyed. Movable, not copyable. Any number of threads may
// read it.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT for what is not a regular file; the text names the
  // path.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  absl::Span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  absl::Span<const std::byte> bytes_;  // empty: nothing is mapped
};

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_MAPPED_FILE_H_
