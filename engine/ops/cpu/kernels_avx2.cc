#include <immintrin.h>

#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define BATON_PANEL_ROWS 4

namespace baton {
namespace {

struct Lanes {
  __m256 low, high;
};

ALWAYS_INLINE Lanes Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
ALWAYS_INLINE void Store(Lanes x, float* p) {
  _mm256_storeu_ps(p, x.low);
  _mm256_storeu_ps(p + 8, x.high);
}
ALWAYS_INLINE Lanes Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
ALWAYS_INLINE Lanes Add(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
ALWAYS_INLINE Lanes Sub(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
ALWAYS_INLINE Lanes Mul(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
ALWAYS_INLINE Lanes Div(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
ALWAYS_INLINE Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
ALWAYS_INLINE Lanes Max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
ALWAYS_INLINE Lanes Min(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
ALWAYS_INLINE Lanes Abs(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
ALWAYS_INLINE Lanes Round(Lanes a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, kNearest), _mm256_round_ps(a.high, kNearest)};
}
ALWAYS_INLINE __m256 PowerOfTwo8(__m256 n) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
// 2^n for a whole n in [-126, 127], 0 for -127.
ALWAYS_INLINE Lanes PowerOfTwo(Lanes n) { return {PowerOfTwo8(n.low), PowerOfTwo8(n.high)}; }
ALWAYS_INLINE float SumLanes(Lanes a) {
  const __m256 sum8 = _mm256_add_ps(a.low, a.high);
  const __m128 sum4 = _mm_add_ps(_mm256_castps256_ps128(sum8), _mm256_extractf128_ps(sum8, 1));
  const __m128 sum2 = _mm_add_ps(sum4, _mm_movehl_ps(sum4, sum4));
  return _mm_cvtss_f32(_mm_add_ss(sum2, _mm_movehdup_ps(sum2)));
}
ALWAYS_INLINE float MaxLanes(Lanes a) {
  const __m256 max8 = _mm256_max_ps(a.low, a.high);
  const __m128 max4 = _mm_max_ps(_mm256_castps256_ps128(max8), _mm256_extractf128_ps(max8, 1));
  const __m128 max2 = _mm_max_ps(max4, _mm_movehl_ps(max4, max4));
  return _mm_cvtss_f32(_mm_max_ss(max2, _mm_movehdup_ps(max2)));
}
ALWAYS_INLINE __m128i LoadHalves(const uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
ALWAYS_INLINE __m256 WidenBF16(__m128i halves) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
ALWAYS_INLINE Lanes LoadF16(const uint16_t* p) {
  return {_mm256_cvtph_ps(LoadHalves(p)), _mm256_cvtph_ps(LoadHalves(p + 8))};
}
ALWAYS_INLINE Lanes LoadBF16(const uint16_t* p) {
  return {WidenBF16(LoadHalves(p)), WidenBF16(LoadHalves(p + 8))};
}
ALWAYS_INLINE void StoreF16(Lanes x, uint16_t* p) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.low, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.high, kNearest));
}
ALWAYS_INLINE __m256i RoundBF16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
}
ALWAYS_INLINE void StoreBF16(Lanes x, uint16_t* p) {
  const __m256i packed = _mm256_packus_epi32(RoundBF16(x.low), RoundBF16(x.high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
// Of whole numbers in [-127, 127].
ALWAYS_INLINE void StoreInt8(Lanes x, int8_t* p) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

ALWAYS_INLINE void Transpose8(const float* from, uint32_t from_stride, float* to, uint32_t to_stride) {
  __m256 a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from + i * from_stride);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    _mm256_storeu_ps(to + c * to_stride, _mm256_permute2f128_ps(a[c], a[4 + c], 0x20));
    _mm256_storeu_ps(to + (4 + c) * to_stride, _mm256_permute2f128_ps(a[c], a[4 + c], 0x31));
  }
}
// Transposes 16 rows of load(row) to columns.
template <typename LoadRow>
ALWAYS_INLINE void TransposeRows(LoadRow load, float* to, uint32_t to_stride) {
  float rows[16][16];
  for (int i = 0; i < 16; ++i) Store(load(i), rows[i]);
  for (uint32_t i = 0; i < 16; i += 8) {
    for (uint32_t j = 0; j < 16; j += 8) Transpose8(rows[i] + j, 16, to + j * to_stride + i, to_stride);
  }
}
constexpr uint32_t kQueryGroup = 2;

constexpr uint32_t kWordLanes = 8;
using Word = __m256;
using WordInt = __m256i;
using Bytes = __m256i;

ALWAYS_INLINE Bytes LoadBytes(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
ALWAYS_INLINE void StoreBytes(Bytes x, std::byte* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
}
ALWAYS_INLINE Bytes LowNibbles(Bytes x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
ALWAYS_INLINE Bytes HighNibbles(Bytes x) { return LowNibbles(_mm256_srli_epi16(x, 4)); }
// Spreads 32 bits over 32 bytes.
ALWAYS_INLINE Bytes AddFifthBits(Bytes x, const std::byte* bits) {
  int mask;
  __builtin_memcpy(&mask, bits, sizeof(mask));
  const __m256i source = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
  const __m256i select = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(mask), source), select);
  return _mm256_or_si256(x, _mm256_and_si256(_mm256_cmpeq_epi8(spread, select), _mm256_set1_epi8(16)));
}
ALWAYS_INLINE WordInt ZeroInt() { return _mm256_setzero_si256(); }
// Dots of 8-bit weights subtract their zero, 128, by themselves.
template <typename Traits>
ALWAYS_INLINE WordInt ZeroCorrection(const int32_t* negated) {
  if constexpr (Traits::kBits == 8) return ZeroInt();
  const WordInt sum = _mm256_set1_epi32(*negated);
  if constexpr (Traits::kSumShift == 0) return sum;
  return Traits::kSumShift < 0 ? _mm256_srai_epi32(sum, -Traits::kSumShift)
                               : _mm256_slli_epi32(sum, Traits::kSumShift);
}
// Pairs of products are summed in 16 bits: no overflow for weights below 64 with activations of [-127, 127],
// nor for the magnitudes, at most 128, of 8-bit weights, whose signs move to the activations.
template <uint32_t kBits>
ALWAYS_INLINE void Dot(WordInt& sum, Bytes weights, const int32_t* activations) {
  __m256i a = _mm256_set1_epi32(*activations);
  if constexpr (kBits == 8) {
    const __m256i centered = _mm256_xor_si256(weights, _mm256_set1_epi8(static_cast<char>(0x80)));
    a = _mm256_sign_epi8(a, centered);
    weights = _mm256_abs_epi8(centered);
  }
  const __m256i pairs = _mm256_maddubs_epi16(weights, a);
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
ALWAYS_INLINE Word ToFloat(WordInt x) { return _mm256_cvtepi32_ps(x); }
ALWAYS_INLINE Word ZeroWord() { return _mm256_setzero_ps(); }
ALWAYS_INLINE Word LoadWord(const float* p) { return _mm256_loadu_ps(p); }
ALWAYS_INLINE Word LoadWordF16(const uint16_t* p) { return _mm256_cvtph_ps(LoadHalves(p)); }
ALWAYS_INLINE Word LowBF16(Bytes pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
ALWAYS_INLINE Word HighBF16(Bytes pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-0x10000)));
}
ALWAYS_INLINE void StoreWord(Word x, float* p) { _mm256_storeu_ps(p, x); }
ALWAYS_INLINE Word BroadcastWord(const float* p) { return _mm256_broadcast_ss(p); }
ALWAYS_INLINE Word AddWord(Word a, Word b) { return _mm256_add_ps(a, b); }
ALWAYS_INLINE Word MulWord(Word a, Word b) { return _mm256_mul_ps(a, b); }
ALWAYS_INLINE Word FmaWord(Word a, Word b, Word c) { return _mm256_fmadd_ps(a, b, c); }
ALWAYS_INLINE void Prefetch(const std::byte* p) { _mm_prefetch(p, _MM_HINT_T0); }

// In the order of their dependence.
#include "engine/ops/cpu/kernel_rows.inc"
//
#include "engine/ops/cpu/kernel_attention.inc"
//
#include "engine/ops/cpu/kernel_blocks.inc"
//
#include "engine/ops/cpu/kernel_matmul.inc"

}  // namespace

const KernelTable kAvx2Kernels = {"avx2",         BATON_PANEL_ROWS, Bf16Arithmetic::kFloat,
                                  Matmul,         Quantize,         Attention,
                                  MergeAttention, RmsNorm,          AddRow,
                                  SiluGate,       GeluGate,         ApplyRope,
                                  StoreRow};

}  // namespace baton
