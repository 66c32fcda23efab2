#include <immintrin.h>

#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define BATON_PANEL_ROWS 12

// Matrix multiplication of bfloat16 weights with AVX512-BF16, as Bf16Arithmetic::kPairs says: a register
// holds a pair of columns of 16 rows of weights, a pair of a row of activations is broadcast to all lanes.
//
// What bounds it: for a panel of rows the dots; for few rows the weights' way from memory.
namespace baton {
namespace {

#include "engine/ops/cpu/lanes_avx512.inc"
//
#include "engine/ops/cpu/kernel_blocks.inc"

// As an instruction by name: with intrinsics the compiler spills the accumulators.
ALWAYS_INLINE void DotPair(Word& sum, Bytes weights, const uint16_t* activations) {
  asm("vdpbf16ps %2%{1to16%}, %1, %0"
      : "+v"(sum)
      : "v"(weights), "m"(*reinterpret_cast<const uint32_t*>(activations)));
}

template <int kRows>
NOINLINE void MultiplyPairs(const MatmulArgs& args, const ActivationPanel& panel, uint32_t tile) {
  const std::byte* const weights = TileAt(args, tile).quants;
  const uint64_t stride = panel.bf16_columns;
  Word sums[kRows];
#pragma GCC unroll 12
  for (int t = 0; t < kRows; ++t) sums[t] = ZeroWord();
  for (uint64_t column = 0; column < stride; column += 2) {
    const std::byte* const at = weights + column * kTileRows * 2;
    Prefetch(at + kPrefetchBytes);
    const Bytes pairs = LoadBytes(at);
#pragma GCC unroll 12
    for (int t = 0; t < kRows; ++t) DotPair(sums[t], pairs, panel.bf16 + stride * t + column);
  }
  StorePanel<kRows>(args, panel, tile * kTileRows, sums);
}

}  // namespace

void Avx512Bf16Matmul(const MatmulArgs& args) {
  if (args.format != PackFormat::kBF16) return kAvx512Kernels.matmul(args);
  for (const ActivationPanel* panel = args.panels; panel < args.panels + args.panel_count; ++panel) {
    ForPanelRows(panel->rows, [&]<int kRows>() {
      for (uint32_t tile = args.first_tile; tile < args.end_tile; ++tile) {
        MultiplyPairs<kRows>(args, *panel, tile);
      }
    });
  }
}

}  // namespace baton
