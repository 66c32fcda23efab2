#include "engine/model_file/dequantize.h"

#include <array>
#include <bit>
#include <cstring>

#include "common/check.h"

namespace baton {
namespace {

uint8_t ByteAt(const std::byte* block, size_t offset) { return std::to_integer<uint8_t>(block[offset]); }

float HalfAt(const std::byte* block, size_t offset) {
  uint16_t bits;
  std::memcpy(&bits, block + offset, sizeof(bits));
  return HalfToFloat(bits);
}

uint32_t Uint32At(const std::byte* block, size_t offset) {
  uint32_t value;
  std::memcpy(&value, block + offset, sizeof(value));
  return value;
}

// 32 elements: the low nibbles of 16 bytes, then their high nibbles.
int NibbleOf(const std::byte* packed, int element) {
  const uint8_t byte = ByteAt(packed, element % 16);
  return element < 16 ? byte & 15 : byte >> 4;
}

void BlockQ4_0(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(NibbleOf(block + 2, i) - 8) * d;
}

void BlockQ4_1(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  const float m = HalfAt(block, 2);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(NibbleOf(block + 4, i)) * d + m;
}

void BlockQ5_0(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  const uint32_t high = Uint32At(block, 2);
  for (int i = 0; i < 32; ++i) {
    const int q = NibbleOf(block + 6, i) | static_cast<int>((high >> i) & 1) << 4;
    out[i] = static_cast<float>(q - 16) * d;
  }
}

void BlockQ5_1(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  const float m = HalfAt(block, 2);
  const uint32_t high = Uint32At(block, 4);
  for (int i = 0; i < 32; ++i) {
    const int q = NibbleOf(block + 8, i) | static_cast<int>((high >> i) & 1) << 4;
    out[i] = static_cast<float>(q) * d + m;
  }
}

void BlockQ8_0(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(ByteAt(block, 2 + i))) * d;
}

struct ScaleAndMin {
  int scale = 0;
  int min = 0;
};

// The 6-bit scale and min of sub-block `j`, eight pairs in 12 bytes: the first four pairs lie whole in the
// low bits of bytes 0-7, the others have their low 4 bits in bytes 8-11 and their high 2 bits on top of bytes
// 0-7.
ScaleAndMin PairAt(const std::byte* packed, int j) {
  if (j < 4) return {ByteAt(packed, j) & 63, ByteAt(packed, j + 4) & 63};
  return {(ByteAt(packed, j + 4) & 15) | (ByteAt(packed, j - 4) >> 6) << 4,
          (ByteAt(packed, j + 4) >> 4) | (ByteAt(packed, j) >> 6) << 4};
}

// The nibble of element `l` of sub-block `j`: each 32 bytes serve an even sub-block (low) and the next one
// (high).
int SubBlockNibble(const std::byte* packed, int j, int l) {
  const uint8_t byte = ByteAt(packed, 32 * (j / 2) + l);
  return j % 2 == 0 ? byte & 15 : byte >> 4;
}

void BlockQ4_K(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  const float dmin = HalfAt(block, 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleAndMin pair = PairAt(block + 4, j);
    const float scale = d * static_cast<float>(pair.scale);
    const float min = dmin * static_cast<float>(pair.min);
    for (int l = 0; l < 32; ++l) {
      out[32 * j + l] = scale * static_cast<float>(SubBlockNibble(block + 16, j, l)) - min;
    }
  }
}

void BlockQ5_K(const std::byte* block, float* out) {
  const float d = HalfAt(block, 0);
  const float dmin = HalfAt(block, 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleAndMin pair = PairAt(block + 4, j);
    const float scale = d * static_cast<float>(pair.scale);
    const float min = dmin * static_cast<float>(pair.min);
    for (int l = 0; l < 32; ++l) {
      const int q = SubBlockNibble(block + 48, j, l) | ((ByteAt(block, 16 + l) >> j) & 1) << 4;
      out[32 * j + l] = scale * static_cast<float>(q) - min;
    }
  }
}

void BlockQ6_K(const std::byte* block, float* out) {
  const std::byte* const low = block;
  const std::byte* const high = block + 128;
  const std::byte* const scales = block + 192;
  const float d = HalfAt(block, 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int group = i % 128 / 32;
    const int l = i % 32;
    const uint8_t packed = ByteAt(low, 64 * half + l + 32 * (group & 1));
    const int low_bits = group < 2 ? packed & 15 : packed >> 4;
    const int high_bits = (ByteAt(high, 32 * half + l) >> (2 * group)) & 3;
    const int scale = static_cast<int8_t>(ByteAt(scales, 8 * half + l / 16 + 2 * group));
    out[i] = d * static_cast<float>(scale) * static_cast<float>((low_bits | high_bits << 4) - 32);
  }
}

void BlockF32(const std::byte* block, float* out) { std::memcpy(out, block, sizeof(float)); }
void BlockF16(const std::byte* block, float* out) { *out = HalfAt(block, 0); }
void BlockBF16(const std::byte* block, float* out) {
  uint16_t bits;
  std::memcpy(&bits, block, sizeof(bits));
  *out = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

using BlockFunction = void (*)(const std::byte* block, float* out);

BlockFunction FunctionOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return BlockF32;
    case TensorType::kF16:
      return BlockF16;
    case TensorType::kBF16:
      return BlockBF16;
    case TensorType::kQ4_0:
      return BlockQ4_0;
    case TensorType::kQ4_1:
      return BlockQ4_1;
    case TensorType::kQ5_0:
      return BlockQ5_0;
    case TensorType::kQ5_1:
      return BlockQ5_1;
    case TensorType::kQ8_0:
      return BlockQ8_0;
    case TensorType::kQ4_K:
      return BlockQ4_K;
    case TensorType::kQ5_K:
      return BlockQ5_K;
    case TensorType::kQ6_K:
      return BlockQ6_K;
  }
  BATON_CHECK(false && "a TensorType outside of its enumerators");
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    // Zero and subnormals: mantissa x 2^-24, exact in float.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {                       // below the smallest normal half, 2^-14
    // Adding 0.5 places the half's last bit, 2^-24, at the float's last bit: the addition itself rounds to
    // even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  const uint32_t odd = magnitude >> 13 & 1;
  const uint32_t rounded = magnitude + 0xfff + odd;
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

void Dequantize(TensorType type, absl::Span<const std::byte> bytes, absl::Span<float> out) {
  const TensorTypeTraits traits = TraitsOf(type);
  BATON_CHECK(bytes.size() % traits.bytes == 0);
  const size_t blocks = bytes.size() / traits.bytes;
  BATON_CHECK(out.size() == blocks * traits.elements);
  const BlockFunction expand = FunctionOf(type);
  for (size_t i = 0; i < blocks; ++i)
    expand(bytes.data() + i * traits.bytes, out.data() + i * traits.elements);
}

}  // namespace baton
