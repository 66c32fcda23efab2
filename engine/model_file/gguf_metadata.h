#ifndef BATON_ENGINE_MODEL_FILE_GGUF_METADATA_H_
#define BATON_ENGINE_MODEL_FILE_GGUF_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/model_file/gguf_cursor.h"
#include "engine/model_file/gguf_format.h"

namespace baton {

// The keys and values of a GGUF file. Values stay in the file's bytes, which must outlive this object; Parse
// has walked every one of them, so the getters read without further checks of bounds. Immutable after Parse.
class GgufMetadata {
 public:
  // Reads `count` keys. INVALID_ARGUMENT for anything that does not fit in the file, for an unknown type,
  // arrays nested deeper than kMaxArrayDepth, a bool other than 0 and 1, and a key that comes twice.
  absl::Status Parse(GgufCursor& cursor, uint64_t count);

  // As in ModelFile.
  std::optional<uint64_t> GetUint(std::string_view key) const;
  std::optional<double> GetFloat(std::string_view key) const;
  std::optional<bool> GetBool(std::string_view key) const;
  std::optional<std::string_view> GetString(std::string_view key) const;
  std::optional<std::vector<std::string_view>> GetStrings(std::string_view key) const;
  std::optional<std::vector<int64_t>> GetInts(std::string_view key) const;
  std::optional<std::vector<float>> GetFloats(std::string_view key) const;
  std::optional<std::vector<bool>> GetBools(std::string_view key) const;

  static constexpr uint64_t kMaxKeys = 65536;
  static constexpr uint64_t kMaxKeyBytes = 65535;
  static constexpr uint64_t kMaxStringBytes = 64 << 20;
  static constexpr uint64_t kMaxArrayElements = 16 << 20;
  static constexpr int kMaxArrayDepth = 4;

 private:
  struct Value {
    GgufType type = GgufType::kUint8;  // of the elements when is_array
    bool is_array = false;
    uint64_t count = 1;
    const std::byte* data = nullptr;  // the first element
  };

  static absl::StatusOr<Value> ParseValue(GgufCursor& cursor, std::string_view what);
  // What follows the type "array": element type, count, elements. `depth` is 1 for an array that is a key's
  // value.
  static absl::Status ParseArray(GgufCursor& cursor, std::string_view what, int depth, Value& array);
  static absl::Status SkipElements(GgufCursor& cursor, std::string_view what, GgufType type, uint64_t count,
                                   int depth);
  const Value* Find(std::string_view key, bool is_array) const;

  absl::flat_hash_map<std::string_view, Value> values_;
};

// `text` fit for an error message: at most 64 bytes, unprintable ones escaped.
std::string Quoted(std::string_view text);

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_GGUF_METADATA_H_
