#ifndef BATON_ENGINE_MODEL_FILE_GGUF_CURSOR_H_
#define BATON_ENGINE_MODEL_FILE_GGUF_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/str_cat.h"

namespace baton {

// Reads a GGUF header from front to back. Each read is checked against what is left of the file; `what` names
// the field in the text of a failed one. Borrows the bytes; used by one thread.
class GgufCursor {
 public:
  explicit GgufCursor(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }
  const std::byte* position() const { return bytes_.data() + offset_; }

  template <typename T>
  absl::StatusOr<T> Read(std::string_view what) {
    if (remaining() < sizeof(T)) return Truncated(what, sizeof(T));
    T value;
    std::memcpy(&value, position(), sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // u64 length and as many bytes, at most `max_bytes`.
  absl::StatusOr<std::string_view> ReadString(std::string_view what, uint64_t max_bytes) {
    absl::StatusOr<uint64_t> length = Read<uint64_t>(what);
    if (!length.ok()) return std::move(length).status();
    if (*length > max_bytes) {
      return absl::InvalidArgumentError(
          StrCat(what, " at byte ", offset_, " has length ", *length, ", limit ", max_bytes));
    }
    if (*length > remaining()) return Truncated(what, *length);
    const std::string_view text(reinterpret_cast<const char*>(position()), *length);
    offset_ += *length;
    return text;
  }

  absl::Status Skip(std::string_view what, uint64_t bytes) {
    if (bytes > remaining()) return Truncated(what, bytes);
    offset_ += bytes;
    return absl::OkStatus();
  }

  absl::Status Truncated(std::string_view what, uint64_t wanted_bytes) const {
    return absl::InvalidArgumentError(StrCat(what, " at byte ", offset_, " needs ", wanted_bytes,
                                             " bytes, the file has ", remaining(), " more"));
  }

 private:
  absl::Span<const std::byte> bytes_;
  uint64_t offset_ = 0;  // <= bytes_.size()
};

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_GGUF_CURSOR_H_
