#include <immintrin.h>

#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

// Matrix multiplication with AMX tiles.
//
// Blocks, with AMX-INT8: for 16 rows of activations and 16 of weights a tile instruction gives all 256 dots
// of a block at once; then each row of dots is scaled and summed as every other kernel does it, lane by lane
// and block by block, so the bits are the same. Panels that are not 16 rows high go to the AVX-512 kernel.
// What bounds it: the scaling, three vector instructions for each row and block, and the stores of dots that
// it reads. Tile stores are not forwarded to loads, nor are stores to tile loads: kBatch blocks go through
// each of the three stages (unpack, multiply, scale) together, so that memory has caught up.
//
// bfloat16, with AMX-BF16: a tile register sums over all columns, as Bf16Arithmetic::kTiles says, and is
// stored once. What bounds it: for many rows the tile products, 16 cycles each; for few the weights' way from
// memory.
namespace baton {
namespace {

#include "engine/ops/cpu/lanes_avx512.inc"
//
#include "engine/ops/cpu/kernel_blocks.inc"
//
#include "engine/ops/cpu/tiles_amx.inc"

constexpr int kRows = kTilePanelRows;
constexpr uint32_t kBatch = 4;
constexpr uint32_t kRowBytes = 32;   // of a block of one row of activations: 8 quads
constexpr uint32_t kQuadBytes = 64;  // of a quad of 16 rows of weights
constexpr uint32_t kQuads = 8;       // of a block
// Of 2 columns of 16 rows of weights; of 32 columns of a row of activations.
constexpr uint32_t kPairBytes = 64;
constexpr uint32_t kPairs = 16;  // of 32 columns

// [row of activations][row of weights]
struct alignas(64) Dots {
  int32_t of[kRows][kTileRows];
};

// tmm0: dots. tmm1, tmm2: activations and weights of 8 quads. tmm3, tmm4: of 4.
constexpr TileConfig kBlockConfig = {.row_bytes = {64, kRowBytes, kQuadBytes, kRowBytes / 2, kQuadBytes},
                                     .rows = {kRows, kRows, kQuads, kRows, kQuads / 2}};

// dots[t][r] = the dot of the first kQuadCount quads at row t of `activations`, signed, with row r of
// `weights`, unsigned.
template <uint32_t kQuadCount>
ALWAYS_INLINE void MultiplyTiles(const int32_t* activations, const std::byte* weights, Dots* dots) {
  constexpr int kActivations = kQuadCount == kQuads ? 1 : 3;
  static_assert(kQuadCount == kQuads || kQuadCount == kQuads / 2);
  ZeroTile<0>();
  LoadTile<kActivations>(activations, kRowBytes);
  LoadTile<kActivations + 1>(weights, kQuadBytes);
  DotBytes<0, kActivations, kActivations + 1>();
  StoreTile<0>(dots, kQuadBytes);
}

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
ALWAYS_INLINE void MultiplyTile(TileData tile, uint32_t columns, const ActivationPanel& panel,
                                Word (&sums)[kRows]) {
  using Traits = FormatTraits<kFormat>;
  alignas(64) std::byte unpacked[kBatch][kQuads * kQuadBytes];
  Dots dots[kBatch][2];  // the second for the upper half of a block with two scales
  const std::byte* tiles[kBatch];
  const uint32_t blocks = columns / kBlockColumns;
  for (uint32_t first = 0; first < blocks; first += kBatch) {
    const uint32_t count = blocks - first < kBatch ? blocks - first : kBatch;
    for (uint32_t i = 0; i < count; ++i) {
      tiles[i] = TileOf<Traits>(tile.quants + uint64_t{first + i} * Traits::kQuantBytes, unpacked[i]);
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
      const std::byte* const s = tile.scales + uint64_t{block} * Traits::kScaleBytes;
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
  for (uint32_t tile = args.first_tile; tile < args.end_tile; ++tile) {
    Word sums[kRows];
#pragma GCC unroll 16
    for (int t = 0; t < kRows; ++t) sums[t] = ZeroWord();
    MultiplyTile<kFormat>(TileAt(args, tile), args.columns, panel, sums);
    StorePanel<kRows>(args, panel, tile * kTileRows, sums);
  }
}

// Blocks: panels of 16 rows here, others by the AVX-512 kernel.
void MultiplyBlocks(const MatmulArgs& args) {
  bool tiles_begun = false;
  for (uint32_t i = 0; i < args.panel_count; ++i) {
    const ActivationPanel& panel = args.panels[i];
    if (panel.rows == kTilePanelRows) {
      if (!tiles_begun) BeginTiles(kBlockConfig);
      tiles_begun = true;
      ForBlockFormat(args.format, [&]<PackFormat kFormat>() { MultiplyTilePanel<kFormat>(args, panel); });
    } else {
      MatmulArgs one = args;
      one.panels = &panel;
      one.panel_count = 1;
      kAvx512Kernels.matmul(one);
    }
  }
  if (tiles_begun) EndTiles();
}

// The sums of tile register kTile, of `panel` and a tile of weights.
template <int kTile>
void StoreBf16Sums(const MatmulArgs& args, const ActivationPanel& panel, uint32_t tile) {
  alignas(64) float sums[kRows][kTileRows];
  StoreTile<kTile>(sums, sizeof(sums[0]));
  const uint32_t row = tile * kTileRows;
  for (uint32_t t = 0; t < panel.rows; ++t) {
    StoreSums(LoadWord(sums[t]), args.rows - row, args.accumulate,
              args.out + (panel.first_row + t) * args.out_stride + row);
  }
}

// One or two panels times one or two tiles: four sums, since a register of sums takes a product every 16
// cycles but needs 52 for one. tmm0 to tmm3: sums, [panel][tile]. tmm4, tmm5: activations. tmm6, tmm7:
// weights.
template <bool kTwoPanels, bool kTwoTiles>
void MultiplyBf16Tiles(const MatmulArgs& args, const ActivationPanel* panels, uint32_t tile) {
  const uint64_t blocks = panels[0].bf16_columns / kBlockColumns;
  const uint64_t stride = panels[0].bf16_columns * sizeof(uint16_t);
  const std::byte* weights = TileAt(args, tile).quants;
  ZeroTile<0>();
  if constexpr (kTwoTiles) ZeroTile<1>();
  if constexpr (kTwoPanels) ZeroTile<2>();
  if constexpr (kTwoPanels && kTwoTiles) ZeroTile<3>();
  for (uint64_t block = 0; block < blocks; ++block) {
    LoadTile<4>(panels[0].bf16 + block * kBlockColumns, stride);
    LoadTile<6>(weights, kPairBytes);
    DotBf16<0, 4, 6>();
    if constexpr (kTwoTiles) {
      LoadTile<7>(weights + args.tile_quant_bytes, kPairBytes);
      DotBf16<1, 4, 7>();
    }
    if constexpr (kTwoPanels) {
      LoadTile<5>(panels[1].bf16 + block * kBlockColumns, stride);
      DotBf16<2, 5, 6>();
      if constexpr (kTwoTiles) DotBf16<3, 5, 7>();
    }
    weights += kPairs * kPairBytes;
  }
  StoreBf16Sums<0>(args, panels[0], tile);
  if constexpr (kTwoTiles) StoreBf16Sums<1>(args, panels[0], tile + 1);
  if constexpr (kTwoPanels) StoreBf16Sums<2>(args, panels[1], tile);
  if constexpr (kTwoPanels && kTwoTiles) StoreBf16Sums<3>(args, panels[1], tile + 1);
}

template <bool kTwoPanels>
void MultiplyBf16Panels(const MatmulArgs& args, const ActivationPanel* panels) {
  const auto rows = static_cast<uint8_t>(panels[0].rows);
  const auto more = static_cast<uint8_t>(kTwoPanels ? panels[1].rows : 0);
  const auto bytes = static_cast<uint16_t>(kTwoPanels ? kPairBytes : 0);
  const TileConfig config = {
      .row_bytes = {kPairBytes, kPairBytes, bytes, bytes, kPairBytes, bytes, kPairBytes, kPairBytes},
      .rows = {rows, rows, more, more, rows, more, kPairs, kPairs}};
  BeginTiles(config);
  uint32_t tile = args.first_tile;
  for (; tile + 2 <= args.end_tile; tile += 2) MultiplyBf16Tiles<kTwoPanels, true>(args, panels, tile);
  if (tile < args.end_tile) MultiplyBf16Tiles<kTwoPanels, false>(args, panels, tile);
  EndTiles();
}

// bfloat16: panels of any rows, so that a row's sums do not hang on how many come with it.
void MultiplyBf16(const MatmulArgs& args) {
  uint32_t i = 0;
  for (; i + 2 <= args.panel_count; i += 2) MultiplyBf16Panels<true>(args, args.panels + i);
  if (i < args.panel_count) MultiplyBf16Panels<false>(args, args.panels + i);
}

}  // namespace

#ifdef BATON_EMULATED_TILES
void EmulatedAmxMatmul(const MatmulArgs& args) {
#else
void AmxMatmul(const MatmulArgs& args) {
#endif
  switch (args.format) {
    case PackFormat::kF32:
    case PackFormat::kF16:
      return kAvx512Kernels.matmul(args);
    case PackFormat::kBF16:
      return MultiplyBf16(args);
    default:
      return MultiplyBlocks(args);
  }
}

}  // namespace baton
