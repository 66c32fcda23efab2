#ifndef BATON_ENGINE_MODEL_FILE_GGUF_FORMAT_H_
#define BATON_ENGINE_MODEL_FILE_GGUF_FORMAT_H_

#include <cstdint>
#include <string_view>

namespace baton {

// The layout of a GGUF file, little-endian throughout:
//   "GGUF", u32 version, u64 tensor count, u64 key count,
//   keys: string name, u32 GgufType, value; a string is u64 length + bytes; an array is u32 type, u64 count,
//   values tensors: string name, u32 dimension count, u64 dimensions (innermost first), u32 type, u64 offset
//   in the data padding to `general.alignment`, then the data; every offset is a multiple of the alignment.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufMinVersion = 2;
inline constexpr uint32_t kGgufMaxVersion = 3;
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr uint32_t kGgufDefaultAlignment = 32;  // bytes
inline constexpr uint32_t kGgufMaxDims = 4;

}  // namespace baton

#endif  // BATON_ENGINE_MODEL_FILE_GGUF_FORMAT_H_
