#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define BATON_PANEL_ROWS 2

namespace baton {
namespace {

struct Lanes {
  float v[16];
};

template <typename F>
ALWAYS_INLINE Lanes Each(F f) {
  Lanes out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}

uint32_t Bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}
float FromBits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// IEEE binary16, to nearest, ties to even.
uint16_t ToF16(float x) {
  const uint32_t sign = Bits(x) >> 16 & 0x8000;
  const uint32_t magnitude = Bits(x) & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {  // subnormal: the addition rounds at 2^-24
    return static_cast<uint16_t>(sign | (Bits(FromBits(magnitude) + 0.5f) - Bits(0.5f)));
  }
  return static_cast<uint16_t>(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}

float FromF16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return FromBits(sign | 0x7f800000 | quiet | (magnitude & 0x3ff) << 13);
  }
  if (magnitude < 0x400) {
    return FromBits(sign | Bits(static_cast<float>(magnitude) * 0x1p-24f));
  }
  return FromBits(sign | ((magnitude << 13) + 0x38000000));
}

Lanes Load(const float* p) {
  return Each([p](int i) { return p[i]; });
}
void Store(Lanes x, float* p) {
  for (int i = 0; i < 16; ++i) p[i] = x.v[i];
}
Lanes Set(float x) {
  return Each([x](int) { return x; });
}
Lanes Add(Lanes a, Lanes b) {
  return Each([&](int i) { return a.v[i] + b.v[i]; });
}
Lanes Sub(Lanes a, Lanes b) {
  return Each([&](int i) { return a.v[i] - b.v[i]; });
}
Lanes Mul(Lanes a, Lanes b) {
  return Each([&](int i) { return a.v[i] * b.v[i]; });
}
Lanes Div(Lanes a, Lanes b) {
  return Each([&](int i) { return a.v[i] / b.v[i]; });
}
Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return Each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
Lanes Max(Lanes a, Lanes b) {
  return Each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
Lanes Min(Lanes a, Lanes b) {
  return Each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
Lanes Abs(Lanes a) {
  return Each([&](int i) { return __builtin_fabsf(a.v[i]); });
}
Lanes Round(Lanes a) {
  return Each([&](int i) { return __builtin_nearbyintf(a.v[i]); });
}
// 2^n for a whole n in [-126, 127], 0 for -127.
Lanes PowerOfTwo(Lanes n) {
  return Each(
      [&](int i) { return FromBits(static_cast<uint32_t>(static_cast<int32_t>(n.v[i]) + 127) << 23); });
}
float SumLanes(Lanes a) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] = a.v[i] + a.v[i + width];
  }
  return a.v[0];
}
float MaxLanes(Lanes a) {
  for (int i = 1; i < 16; ++i) a.v[0] = a.v[i] > a.v[0] ? a.v[i] : a.v[0];
  return a.v[0];
}
Lanes LoadF16(const uint16_t* p) {
  return Each([p](int i) { return FromF16(p[i]); });
}
Lanes LoadBF16(const uint16_t* p) {
  return Each([p](int i) { return FromBits(uint32_t{p[i]} << 16); });
}
void StoreF16(Lanes x, uint16_t* p) {
  for (int i = 0; i < 16; ++i) p[i] = ToF16(x.v[i]);
}
void StoreBF16(Lanes x, uint16_t* p) {
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = Bits(x.v[i]);
    p[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}
// Of whole numbers in [-127, 127].
void StoreInt8(Lanes x, int8_t* p) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(x.v[i]);
}
// Transposes 16 rows of load(row) to columns.
template <typename LoadRow>
void TransposeRows(LoadRow load, float* to, uint32_t to_stride) {
  for (int i = 0; i < 16; ++i) {
    const Lanes row = load(i);
    for (int j = 0; j < 16; ++j) to[j * to_stride + i] = row.v[j];
  }
}
constexpr uint32_t kQueryGroup = 2;

constexpr uint32_t kWordLanes = 16;
using Word = Lanes;
struct WordInt {
  int32_t v[16];
};
struct Bytes {
  uint8_t v[64];
};

Bytes LoadBytes(const std::byte* p) {
  Bytes out;
  __builtin_memcpy(out.v, p, sizeof(out.v));
  return out;
}
void StoreBytes(const Bytes& x, std::byte* p) { __builtin_memcpy(p, x.v, sizeof(x.v)); }
Bytes LowNibbles(Bytes x) {
  for (uint8_t& byte : x.v) byte &= 15;
  return x;
}
Bytes HighNibbles(Bytes x) {
  for (uint8_t& byte : x.v) byte >>= 4;
  return x;
}
Bytes AddFifthBits(Bytes x, const std::byte* bits) {
  for (int i = 0; i < 64; ++i) {
    x.v[i] = static_cast<uint8_t>(x.v[i] | (static_cast<uint8_t>(bits[i / 8]) >> i % 8 & 1) << 4);
  }
  return x;
}
WordInt ZeroInt() { return {}; }
template <typename Traits>
WordInt ZeroCorrection(const int32_t* negated) {
  WordInt out;
  for (int32_t& lane : out.v) {
    lane = Traits::kSumShift < 0 ? *negated >> -Traits::kSumShift : *negated * (1 << Traits::kSumShift);
  }
  return out;
}
template <uint32_t kBits>
void Dot(WordInt& sum, const Bytes& weights, const int32_t* activations) {
  int8_t a[4];
  __builtin_memcpy(a, activations, sizeof(a));
  for (int lane = 0; lane < 16; ++lane) {
    for (int i = 0; i < 4; ++i) sum.v[lane] += weights.v[4 * lane + i] * a[i];
  }
}
Lanes ToFloat(const WordInt& x) {
  return Each([&](int i) { return static_cast<float>(x.v[i]); });
}
Word ZeroWord() { return Set(0.0f); }
Word LoadWord(const float* p) { return Load(p); }
Word LoadWordF16(const uint16_t* p) { return LoadF16(p); }
uint32_t Pair(const Bytes& pairs, int lane) {
  uint32_t pair;
  __builtin_memcpy(&pair, pairs.v + 4 * lane, sizeof(pair));
  return pair;
}
Word LowBF16(const Bytes& pairs) {
  return Each([&](int i) { return FromBits(Pair(pairs, i) << 16); });
}
Word HighBF16(const Bytes& pairs) {
  return Each([&](int i) { return FromBits(Pair(pairs, i) & 0xffff0000); });
}
void StoreWord(Word x, float* p) { Store(x, p); }
Word BroadcastWord(const float* p) { return Set(*p); }
Word AddWord(Word a, Word b) { return Add(a, b); }
Word MulWord(Word a, Word b) { return Mul(a, b); }
Word FmaWord(Word a, Word b, Word c) { return Fma(a, b, c); }
void Prefetch(const std::byte*) {}

// In the order of their dependence.
#include "engine/ops/cpu/kernel_rows.inc"
//
#include "engine/ops/cpu/kernel_attention.inc"
//
#include "engine/ops/cpu/kernel_blocks.inc"
//
#include "engine/ops/cpu/kernel_matmul.inc"

}  // namespace

const KernelTable kPortableKernels = {"portable",     BATON_PANEL_ROWS, Bf16Arithmetic::kFloat,
                                      Matmul,         Quantize,         Attention,
                                      MergeAttention, RmsNorm,          AddRow,
                                      SiluGate,       GeluGate,         ApplyRope,
                                      StoreRow};

}  // namespace baton
