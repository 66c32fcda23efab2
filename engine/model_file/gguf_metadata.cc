#include "engine/model_file/gguf_metadata.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "common/string_views.h"

namespace baton {
namespace {

// Bytes of one value; 0 for strings and arrays, whose size varies.
uint64_t FixedSize(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

struct Integer {
  bool negative = false;
  uint64_t bits = 0;  // two's complement
};

template <typename T>
Integer LoadInteger(const std::byte* from) {
  const T value = Load<T>(from);
  return {value < 0, static_cast<uint64_t>(static_cast<int64_t>(value))};
}

std::optional<double> FloatAt(GgufType type, const std::byte* from) {
  if (type == GgufType::kFloat32) return Load<float>(from);
  if (type == GgufType::kFloat64) return Load<double>(from);
  return std::nullopt;
}

std::string_view StringAt(const std::byte* from) {
  return {reinterpret_cast<const char*>(from) + sizeof(uint64_t), Load<uint64_t>(from)};
}

absl::StatusOr<GgufType> ReadType(GgufCursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const uint32_t number, cursor.Read<uint32_t>(what));
  if (number > static_cast<uint32_t>(GgufType::kFloat64)) {
    return absl::InvalidArgumentError(StrCat(what, " has the unknown type ", number));
  }
  return static_cast<GgufType>(number);
}

std::optional<Integer> IntegerAt(GgufType type, const std::byte* from) {
  switch (type) {
    case GgufType::kUint8:
      return Integer{false, Load<uint8_t>(from)};
    case GgufType::kUint16:
      return Integer{false, Load<uint16_t>(from)};
    case GgufType::kUint32:
      return Integer{false, Load<uint32_t>(from)};
    case GgufType::kUint64:
      return Integer{false, Load<uint64_t>(from)};
    case GgufType::kInt8:
      return LoadInteger<int8_t>(from);
    case GgufType::kInt16:
      return LoadInteger<int16_t>(from);
    case GgufType::kInt32:
      return LoadInteger<int32_t>(from);
    case GgufType::kInt64:
      return LoadInteger<int64_t>(from);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  if (text.size() <= kMaxBytes) return StrCat("\"", absl::CHexEscape(AbslView(text)), "\"");
  return StrCat("\"", absl::CHexEscape(AbslView(text.substr(0, kMaxBytes))), "...\"");
}

absl::Status GgufMetadata::Parse(GgufCursor& cursor, uint64_t count) {
  if (count > kMaxKeys) {
    return absl::InvalidArgumentError(StrCat("key count is ", count, ", limit ", kMaxKeys));
  }
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::string_view key, cursor.ReadString("a metadata key", kMaxKeyBytes));
    const std::string what = StrCat("the value of ", Quoted(key));
    ASSIGN_OR_RETURN(const Value value, ParseValue(cursor, what));
    if (!values_.emplace(key, value).second) {
      return absl::InvalidArgumentError(StrCat("the key ", Quoted(key), " comes twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufMetadata::Value> GgufMetadata::ParseValue(GgufCursor& cursor, std::string_view what) {
  Value value;
  ASSIGN_OR_RETURN(value.type, ReadType(cursor, what));
  if (value.type == GgufType::kArray) {
    value.is_array = true;
    RETURN_IF_ERROR(ParseArray(cursor, what, 1, value));
    return value;
  }
  value.data = cursor.position();
  RETURN_IF_ERROR(SkipElements(cursor, what, value.type, 1, 0));
  return value;
}

absl::Status GgufMetadata::ParseArray(GgufCursor& cursor, std::string_view what, int depth, Value& array) {
  if (depth > kMaxArrayDepth) {
    return absl::InvalidArgumentError(
        StrCat(what, " nests arrays deeper than the limit of ", kMaxArrayDepth));
  }
  ASSIGN_OR_RETURN(array.type, ReadType(cursor, what));
  ASSIGN_OR_RETURN(array.count, cursor.Read<uint64_t>(what));
  if (array.count > kMaxArrayElements) {
    return absl::InvalidArgumentError(
        StrCat(what, " has ", array.count, " elements, limit ", kMaxArrayElements));
  }
  array.data = cursor.position();
  return SkipElements(cursor, what, array.type, array.count, depth);
}

absl::Status GgufMetadata::SkipElements(GgufCursor& cursor, std::string_view what, GgufType type,
                                        uint64_t count, int depth) {
  if (type == GgufType::kString) {
    for (uint64_t i = 0; i < count; ++i) RETURN_IF_ERROR(cursor.ReadString(what, kMaxStringBytes).status());
    return absl::OkStatus();
  }
  if (type == GgufType::kArray) {
    Value inner;
    for (uint64_t i = 0; i < count; ++i) RETURN_IF_ERROR(ParseArray(cursor, what, depth + 1, inner));
    return absl::OkStatus();
  }
  const std::byte* const first = cursor.position();
  RETURN_IF_ERROR(cursor.Skip(what, count * FixedSize(type)));  // count <= kMaxArrayElements: no overflow
  if (type != GgufType::kBool) return absl::OkStatus();
  for (uint64_t i = 0; i < count; ++i) {
    if (first[i] > std::byte{1}) {
      return absl::InvalidArgumentError(
          StrCat(what, " holds the bool ", std::to_integer<int>(first[i]), ", neither 0 nor 1"));
    }
  }
  return absl::OkStatus();
}

const GgufMetadata::Value* GgufMetadata::Find(std::string_view key, bool is_array) const {
  const auto found = values_.find(key);
  if (found == values_.end() || found->second.is_array != is_array) return nullptr;
  return &found->second;
}

std::optional<uint64_t> GgufMetadata::GetUint(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/false);
  if (value == nullptr) return std::nullopt;
  const std::optional<Integer> integer = IntegerAt(value->type, value->data);
  if (!integer.has_value() || integer->negative) return std::nullopt;
  return integer->bits;
}

std::optional<double> GgufMetadata::GetFloat(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/false);
  if (value == nullptr) return std::nullopt;
  return FloatAt(value->type, value->data);
}

std::optional<bool> GgufMetadata::GetBool(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/false);
  if (value == nullptr || value->type != GgufType::kBool) return std::nullopt;
  return *value->data == std::byte{1};
}

std::optional<std::string_view> GgufMetadata::GetString(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/false);
  if (value == nullptr || value->type != GgufType::kString) return std::nullopt;
  return StringAt(value->data);
}

std::optional<std::vector<std::string_view>> GgufMetadata::GetStrings(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/true);
  if (value == nullptr || value->type != GgufType::kString) return std::nullopt;
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  const std::byte* position = value->data;
  for (uint64_t i = 0; i < value->count; ++i) {
    strings.push_back(StringAt(position));
    position += sizeof(uint64_t) + strings.back().size();
  }
  return strings;
}

std::optional<std::vector<int64_t>> GgufMetadata::GetInts(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/true);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> integers;
  integers.reserve(value->count);
  const uint64_t size = FixedSize(value->type);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<Integer> integer = IntegerAt(value->type, value->data + i * size);
    if (!integer.has_value()) return std::nullopt;
    if (!integer->negative && integer->bits > INT64_MAX) return std::nullopt;
    integers.push_back(static_cast<int64_t>(integer->bits));
  }
  return integers;
}

std::optional<std::vector<float>> GgufMetadata::GetFloats(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/true);
  if (value == nullptr) return std::nullopt;
  std::vector<float> floats;
  floats.reserve(value->count);
  const uint64_t size = FixedSize(value->type);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<double> number = FloatAt(value->type, value->data + i * size);
    if (!number.has_value()) return std::nullopt;
    floats.push_back(static_cast<float>(*number));
  }
  return floats;
}

std::optional<std::vector<bool>> GgufMetadata::GetBools(std::string_view key) const {
  const Value* value = Find(key, /*is_array=*/true);
  if (value == nullptr || value->type != GgufType::kBool) return std::nullopt;
  std::vector<bool> bools(value->count);
  for (uint64_t i = 0; i < value->count; ++i) bools[i] = value->data[i] == std::byte{1};
  return bools;
}

}  // namespace baton
