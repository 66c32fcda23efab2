#include <immintrin.h>

#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define BATON_PANEL_ROWS 12

namespace baton {
namespace {

using Lanes = __m512;

ALWAYS_INLINE Lanes Load(const float* p) { return _mm512_loadu_ps(p); }
ALWAYS_INLINE void Store(Lanes x, float* p) { _mm512_storeu_ps(p, x); }
ALWAYS_INLINE Lanes Set(float x) { return _mm512_set1_ps(x); }
ALWAYS_INLINE Lanes Add(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
ALWAYS_INLINE Lanes Sub(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
ALWAYS_INLINE Lanes Mul(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
ALWAYS_INLINE Lanes Div(Lanes a, Lanes b) { return _mm512_div_ps(a, b); }
ALWAYS_INLINE Lanes Fma(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }
ALWAYS_INLINE Lanes Max(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
ALWAYS_INLINE Lanes Min(Lanes a, Lanes b) { return _mm512_min_ps(a, b); }
ALWAYS_INLINE Lanes Abs(Lanes a) { return _mm512_abs_ps(a); }
ALWAYS_INLINE Lanes Round(Lanes a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n for a whole n in [-126, 127].
ALWAYS_INLINE Lanes PowerOfTwo(Lanes n) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
ALWAYS_INLINE __m256 UpperHalf(Lanes a) { return _mm512_extractf32x8_ps(a, 1); }
ALWAYS_INLINE float SumLanes(Lanes a) {
  const __m256 sum8 = _mm256_add_ps(_mm512_castps512_ps256(a), UpperHalf(a));
  const __m128 sum4 = _mm_add_ps(_mm256_castps256_ps128(sum8), _mm256_extractf128_ps(sum8, 1));
  const __m128 sum2 = _mm_add_ps(sum4, _mm_movehl_ps(sum4, sum4));
  return _mm_cvtss_f32(_mm_add_ss(sum2, _mm_movehdup_ps(sum2)));
}
ALWAYS_INLINE float MaxLanes(Lanes a) {
  const __m256 max8 = _mm256_max_ps(_mm512_castps512_ps256(a), UpperHalf(a));
  const __m128 max4 = _mm_max_ps(_mm256_castps256_ps128(max8), _mm256_extractf128_ps(max8, 1));
  const __m128 max2 = _mm_max_ps(max4, _mm_movehl_ps(max4, max4));
  return _mm_cvtss_f32(_mm_max_ss(max2, _mm_movehdup_ps(max2)));
}
ALWAYS_INLINE __m256i LoadHalves(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
ALWAYS_INLINE Lanes LoadF16(const uint16_t* p) { return _mm512_cvtph_ps(LoadHalves(p)); }
ALWAYS_INLINE Lanes LoadBF16(const uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadHalves(p)), 16));
}
ALWAYS_INLINE void StoreF16(Lanes x, uint16_t* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
ALWAYS_INLINE void StoreBF16(Lanes x, uint16_t* p) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
// Of whole numbers in [-127, 127].
ALWAYS_INLINE void StoreInt8(Lanes x, int8_t* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
}

// Transposes 16 rows of load(row) to columns: pairs of lanes, quads of lanes, then the 128-bit quarters
// twice.
template <typename LoadRow>
ALWAYS_INLINE void TransposeRows(LoadRow load, float* to, uint32_t to_stride) {
  __m512 a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) a[i] = load(i);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  // a[4 g + c] holds, in quarter q, column 4 q + c of rows 4 g ... 4 g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 low01 = _mm512_shuffle_f32x4(a[c], a[4 + c], 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(a[c], a[4 + c], 0xee);
    const __m512 low23 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0x44);
    const __m512 high23 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0xee);
    Store(_mm512_shuffle_f32x4(low01, low23, 0x88), to + c * to_stride);
    Store(_mm512_shuffle_f32x4(low01, low23, 0xdd), to + (4 + c) * to_stride);
    Store(_mm512_shuffle_f32x4(high01, high23, 0x88), to + (8 + c) * to_stride);
    Store(_mm512_shuffle_f32x4(high01, high23, 0xdd), to + (12 + c) * to_stride);
  }
}
constexpr uint32_t kQueryGroup = 8;

constexpr uint32_t kWordLanes = 16;
using Word = __m512;
using WordInt = __m512i;
using Bytes = __m512i;

ALWAYS_INLINE Bytes LoadBytes(const std::byte* p) { return _mm512_loadu_si512(p); }
ALWAYS_INLINE Bytes LowNibbles(Bytes x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
ALWAYS_INLINE Bytes HighNibbles(Bytes x) { return LowNibbles(_mm512_srli_epi16(x, 4)); }
ALWAYS_INLINE Bytes AddFifthBits(Bytes x, const std::byte* bits) {
  uint64_t mask;
  __builtin_memcpy(&mask, bits, sizeof(mask));
  return _mm512_mask_add_epi8(x, mask, x, _mm512_set1_epi8(16));
}
ALWAYS_INLINE WordInt ZeroInt() { return _mm512_setzero_si512(); }
template <uint32_t kBits>
ALWAYS_INLINE WordInt ZeroCorrection(const int32_t* negated, int shift) {
  return _mm512_slli_epi32(_mm512_set1_epi32(*negated), shift);
}
// As an instruction by name: with intrinsics the compiler spills the accumulators.
template <uint32_t kBits>
ALWAYS_INLINE void Dot(WordInt& sum, Bytes weights, const int32_t* activations) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(weights), "m"(*activations));
}
ALWAYS_INLINE Word ToFloat(WordInt x) { return _mm512_cvtepi32_ps(x); }
ALWAYS_INLINE Word ZeroWord() { return _mm512_setzero_ps(); }
ALWAYS_INLINE Word LoadWord(const float* p) { return Load(p); }
ALWAYS_INLINE Word LoadWordF16(const uint16_t* p) { return LoadF16(p); }
ALWAYS_INLINE Word LoadWordBF16(const uint16_t* p) { return LoadBF16(p); }
ALWAYS_INLINE void StoreWord(Word x, float* p) { Store(x, p); }
ALWAYS_INLINE Word BroadcastWord(const float* p) { return Set(*p); }
ALWAYS_INLINE Word AddWord(Word a, Word b) { return Add(a, b); }
ALWAYS_INLINE Word MulWord(Word a, Word b) { return Mul(a, b); }
ALWAYS_INLINE Word FmaWord(Word a, Word b, Word c) { return Fma(a, b, c); }
ALWAYS_INLINE void Prefetch(const std::byte* p) { _mm_prefetch(p, _MM_HINT_T0); }

// In the order of their dependence.
#include "engine/ops/cpu/kernel_rows.inc"
//
#include "engine/ops/cpu/kernel_attention.inc"
//
#include "engine/ops/cpu/kernel_matmul.inc"

}  // namespace

const KernelTable kAvx512Kernels = {"avx512", BATON_PANEL_ROWS, Matmul,   Quantize, Attention, MergeAttention,
                                    RmsNorm,  AddRow,           SiluGate, GeluGate, ApplyRope, StoreRow};

}  // namespace baton
