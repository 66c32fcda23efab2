#include <immintrin.h>

#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

// Matrix multiplication with AMX-INT8 tiles. For 16 rows of activations and 16 of weights a tile instruction
// gives all 256 dots of a block at once; then each row of dots is scaled and summed as every other kernel
// does it, lane by lane and block by block, so the bits are the same. Panels that are not 16 rows high go to
// the AVX-512 kernel.
//
// What bounds it: the scaling, three vector instructions for each row and block, and the stores of dots that
// it reads. Tile stores are not forwarded to loads, nor are stores to tile loads: kBatch blocks go through
// each of the three stages (unpack, multiply, scale) together, so that memory has caught up.
namespace baton {
namespace {

#include "engine/ops/cpu/lanes_avx512.inc"
//
#include "engine/ops/cpu/kernel_blocks.inc"

constexpr int kRows = kTilePanelRows;
constexpr uint32_t kBatch = 4;
constexpr uint32_t kRowBytes = 32;   // of a block of one row of activations: 8 quads
constexpr uint32_t kQuadBytes = 64;  // of a quad of 16 rows of weights
constexpr uint32_t kQuads = 8;       // of a block

// [row of activations][row of weights]
struct alignas(64) Dots {
  int32_t of[kRows][kTileRows];
};

#ifdef BATON_EMULATED_TILES

ALWAYS_INLINE void BeginTiles() {}
ALWAYS_INLINE void EndTiles() {}

template <uint32_t kQuadCount>
void MultiplyTiles(const int32_t* activations, const std::byte* weights, Dots* dots) {
  const auto* const a = reinterpret_cast<const int8_t*>(activations);
  const auto* const w = reinterpret_cast<const uint8_t*>(weights);
  for (int t = 0; t < kRows; ++t) {
    for (uint32_t row = 0; row < kTileRows; ++row) {
      int32_t dot = 0;
      for (uint32_t i = 0; i < 4 * kQuadCount; ++i) {
        dot += a[t * kRowBytes + i] * w[i / 4 * kQuadBytes + row * 4 + i % 4];
      }
      dots->of[t][row] = dot;
    }
  }
}

#else

// As LDTILECFG reads it (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18.2).
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

// tmm0: dots. tmm1, tmm2: activations and weights of 8 quads. tmm3, tmm4: of 4.
constexpr TileConfig kConfig = {.palette = 1,
                                .start_row = 0,
                                .reserved = {},
                                .row_bytes = {64, kRowBytes, kQuadBytes, kRowBytes / 2, kQuadBytes},
                                .rows = {kRows, kRows, kQuads, kRows, kQuads / 2}};

// Instructions by name, all of them barriers to the compiler: GCC 12's intrinsics do not say what memory they
// read.
ALWAYS_INLINE void BeginTiles() { asm volatile("ldtilecfg %0" ::"m"(kConfig) : "memory"); }
ALWAYS_INLINE void EndTiles() { asm volatile("tilerelease" ::: "memory"); }

// dots[t][r] = the dot of the first kQuadCount quads at row t of `activations`, signed, with row r of
// `weights`, unsigned.
template <uint32_t kQuadCount>
ALWAYS_INLINE void MultiplyTiles(const int32_t* activations, const std::byte* weights, Dots* dots) {
  const uint64_t row_bytes = kRowBytes;
  const uint64_t quad_bytes = kQuadBytes;
  if constexpr (kQuadCount == kQuads) {
    asm volatile(
        "tilezero %%tmm0\n\t"
        "tileloadd (%0,%2,1), %%tmm1\n\t"
        "tileloadd (%1,%3,1), %%tmm2\n\t"
        "tdpbsud %%tmm2, %%tmm1, %%tmm0\n\t"
        "tilestored %%tmm0, (%4,%3,1)" ::"r"(activations),
        "r"(weights), "r"(row_bytes), "r"(quad_bytes), "r"(dots)
        : "memory");
  } else {
    static_assert(kQuadCount == kQuads / 2);
    asm volatile(
        "tilezero %%tmm0\n\t"
        "tileloadd (%0,%2,1), %%tmm3\n\t"
        "tileloadd (%1,%3,1), %%tmm4\n\t"
        "tdpbsud %%tmm4, %%tmm3, %%tmm0\n\t"
        "tilestored %%tmm0, (%4,%3,1)" ::"r"(activations),
        "r"(weights), "r"(row_bytes), "r"(quad_bytes), "r"(dots)
        : "memory");
  }
}

#endif

// The quads of a block one after the other, as a tile takes them: in place where they are stored so.
template <typename Traits>
ALWAYS_INLINE const std::byte* TileOf(const std::byte* quants, std::byte* unpacked) {
  if constexpr (Traits::kBytes) return quants;
#pragma GCC unroll 8
  for (uint32_t quad = 0; quad < kQuads; ++quad) {
    _mm512_store_si512(unpacked + quad * kQuadBytes, Unpack<Traits>(quants, quad, 0));
  }
  return unpacked;
}

// The dots less the zero's part.
template <PackFormat kFormat>
ALWAYS_INLINE void LoadDots(const Dots& from, const int32_t* negated, WordInt (&dots)[kRows]) {
  using Traits = FormatTraits<kFormat>;
#pragma GCC unroll 16
  for (int t = 0; t < kRows; ++t) {
    dots[t] = _mm512_load_si512(from.of[t]);
    if constexpr (!Traits::kMin) {
      dots[t] = _mm512_add_epi32(dots[t], ZeroCorrection<Traits>(negated + t));
    }
  }
}

template <PackFormat kFormat>
ALWAYS_INLINE void MultiplyTile(const std::byte* quants, const std::byte* tile_scales, uint32_t columns,
                                const ActivationPanel& panel, Word (&sums)[kRows]) {
  using Traits = FormatTraits<kFormat>;
  alignas(64) std::byte unpacked[kBatch][kQuads * kQuadBytes];
  Dots dots[kBatch][2];  // the second for the upper half of a block with two scales
  const std::byte* tiles[kBatch];
  const uint32_t blocks = columns / kBlockColumns;
  for (uint32_t first = 0; first < blocks; first += kBatch) {
    const uint32_t count = blocks - first < kBatch ? blocks - first : kBatch;
    for (uint32_t i = 0; i < count; ++i) {
      tiles[i] = TileOf<Traits>(quants + uint64_t{first + i} * Traits::kQuantBytes, unpacked[i]);
    }
    for (uint32_t i = 0; i < count; ++i) {
      const int32_t* const activations = panel.quads + uint64_t{first + i} * kQuads * kRows;
      if constexpr (Traits::kBits == 6) {
        MultiplyTiles<kQuads / 2>(activations, tiles[i], &dots[i][0]);
        MultiplyTiles<kQuads / 2>(activations + kQuads / 2, tiles[i] + kQuads / 2 * kQuadBytes, &dots[i][1]);
      } else {
        MultiplyTiles<kQuads>(activations, tiles[i], &dots[i][0]);
      }
    }
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t block = first + i;
      const std::byte* const s = tile_scales + uint64_t{block} * Traits::kScaleBytes;
      const float* const scales = panel.scales + block * kRows;
      WordInt words[kRows];
      if constexpr (Traits::kBits == 6) {
        const int32_t* const negated = panel.negated16 + 2 * block * kRows;
        LoadDots<kFormat>(dots[i][0], negated, words);
        AddScaled<kRows>(words, LoadScales<true>(s, 0, 0), scales, sums);
        LoadDots<kFormat>(dots[i][1], negated + kRows, words);
        AddScaled<kRows>(words, LoadScales<true>(s, 1, 0), scales, sums);
      } else {
        LoadDots<kFormat>(dots[i][0], panel.negated + block * kRows, words);
        AddScaled<kRows>(words, LoadScales<Traits::kWideScales>(s, 0, 0), scales, sums);
      }
      if constexpr (Traits::kMin) {
        AddMinima<kRows>(LoadScales<Traits::kWideScales>(s, 1, 0), panel.sums + block * kRows, sums);
      }
    }
  }
}

template <PackFormat kFormat>
void MultiplyTilePanel(const MatmulArgs& args, const ActivationPanel& panel) {
  using Traits = FormatTraits<kFormat>;
  const uint64_t blocks = args.columns / kBlockColumns;
  for (uint32_t tile = args.first_tile; tile < args.end_tile; ++tile) {
    Word sums[kRows];
#pragma GCC unroll 16
    for (int t = 0; t < kRows; ++t) sums[t] = ZeroWord();
    MultiplyTile<kFormat>(args.quants + tile * blocks * Traits::kQuantBytes,
                          args.scales + tile * blocks * Traits::kScaleBytes, args.columns, panel, sums);
    StorePanel<kRows>(args, panel, tile * kTileRows, sums);
  }
}

}  // namespace

#ifdef BATON_EMULATED_TILES
void EmulatedAmxMatmul(const MatmulArgs& args) {
#else
void AmxMatmul(const MatmulArgs& args) {
#endif
  bool tiles_begun = false;
  for (uint32_t i = 0; i < args.panel_count; ++i) {
    const ActivationPanel& panel = args.panels[i];
    if (panel.rows == kTilePanelRows) {
      if (!tiles_begun) BeginTiles();
      tiles_begun = true;
      // CpuOps makes no panels of 16 rows for float formats.
      const auto multiply = [&]<PackFormat kFormat>() { MultiplyTilePanel<kFormat>(args, panel); };
      if (!ForBlockFormat(args.format, multiply)) __builtin_trap();
    } else {
      MatmulArgs one = args;
      one.panels = &panel;
      one.panel_count = 1;
      kAvx512Kernels.matmul(one);
    }
  }
  if (tiles_begun) EndTiles();
}

}  // namespace baton
