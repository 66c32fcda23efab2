#include "engine/ops/cpu/quant_blocks.h"

#include <cstring>

#include "common/check.h"
#include "engine/model_file/dequantize.h"

namespace baton {
namespace {

float Half(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return HalfToFloat(bits);
}

// 16 bytes: low nibbles are elements 0 ... 15, high ones 16 ... 31.
void SplitNibbles(const uint8_t* packed, uint8_t* q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = packed[i] & 15;
    q[i + 16] = packed[i] >> 4;
  }
}

void AddFifthBits(const uint8_t* p, uint8_t* q) {
  uint32_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>(q[i] | (bits >> i & 1) << 4);
}

void SetZero(QuantBlock& block, float d, uint8_t zero) {
  block.d[0] = block.d[1] = d;
  block.zero = zero;
}

void SetMinimum(QuantBlock& block, float d, float m) {
  block.d[0] = block.d[1] = d;
  block.m = m;
}

// Sub-block `sub` of a Q4_K or Q5_K block, whose nibbles begin at `quants` and fifth bits, if any, at `high`.
void ReadSubBlock(const uint8_t* p, const uint8_t* quants, const uint8_t* high, uint32_t sub,
                  QuantBlock& block) {
  const uint8_t* const s = p + 4;
  const uint32_t scale = sub < 4 ? s[sub] & 63 : (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
  const uint32_t min = sub < 4 ? s[sub + 4] & 63 : (s[sub + 4] >> 4) | (s[sub] >> 6) << 4;
  SetMinimum(block, Half(p) * static_cast<float>(scale), -Half(p + 2) * static_cast<float>(min));
  for (int i = 0; i < 32; ++i) {
    const uint8_t packed = quants[sub / 2 * 32 + i];
    block.q[i] = sub % 2 == 0 ? packed & 15 : packed >> 4;
    if (high != nullptr) block.q[i] = static_cast<uint8_t>(block.q[i] | (high[i] >> sub & 1) << 4);
  }
}

// Group `sub` % 4 of half `sub` / 4 of a Q6_K block.
void ReadQ6K(const uint8_t* p, uint32_t sub, QuantBlock& block) {
  const uint32_t half = sub / 4;
  const uint32_t group = sub % 4;
  const auto* const scales = reinterpret_cast<const int8_t*>(p + 192);
  const float d = Half(p + 208);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint8_t low = p[64 * half + i + 32 * (group & 1)];
    const uint8_t high = p[128 + 32 * half + i] >> (2 * group) & 3;
    block.q[i] = static_cast<uint8_t>((group < 2 ? low & 15 : low >> 4) | high << 4);
  }
  for (uint32_t part = 0; part < 2; ++part) {
    block.d[part] = d * static_cast<float>(scales[8 * half + part + 2 * group]);
  }
  block.zero = 32;
}

}  // namespace

QuantBlock ReadQuantBlock(TensorType type, const std::byte* row, uint64_t index) {
  const TensorTypeTraits traits = TraitsOf(type);
  const uint64_t per_block = traits.elements / 32;
  const auto* const p = reinterpret_cast<const uint8_t*>(row) + index / per_block * traits.bytes;
  const uint32_t sub = static_cast<uint32_t>(index % per_block);
  QuantBlock block;
  switch (type) {
    case TensorType::kQ4_0:
      SplitNibbles(p + 2, block.q);
      SetZero(block, Half(p), 8);
      return block;
    case TensorType::kQ4_1:
      SplitNibbles(p + 4, block.q);
      SetMinimum(block, Half(p), Half(p + 2));
      return block;
    case TensorType::kQ5_0:
      SplitNibbles(p + 6, block.q);
      AddFifthBits(p + 2, block.q);
      SetZero(block, Half(p), 16);
      return block;
    case TensorType::kQ5_1:
      SplitNibbles(p + 8, block.q);
      AddFifthBits(p + 4, block.q);
      SetMinimum(block, Half(p), Half(p + 2));
      return block;
    case TensorType::kQ8_0:
      for (int i = 0; i < 32; ++i) block.q[i] = p[2 + i] ^ 0x80;
      SetZero(block, Half(p), 128);
      return block;
    case TensorType::kQ4_K:
      ReadSubBlock(p, p + 16, nullptr, sub, block);
      return block;
    case TensorType::kQ5_K:
      ReadSubBlock(p, p + 48, p + 16, sub, block);
      return block;
    case TensorType::kQ6_K:
      ReadQ6K(p, sub, block);
      return block;
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      break;
  }
  BATON_CHECK(false);  // not quantised
  return block;
}

}  // namespace baton
