#include <immintrin.h>

#include "engine/ops/cpu/kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define BATON_PANEL_ROWS 12

namespace baton {
namespace {

#include "engine/ops/cpu/lanes_avx512.inc"
//
// In the order of their dependence.
#include "engine/ops/cpu/kernel_rows.inc"
//
#include "engine/ops/cpu/kernel_attention.inc"
//
#include "engine/ops/cpu/kernel_blocks.inc"
//
#include "engine/ops/cpu/kernel_matmul.inc"

}  // namespace

const KernelTable kAvx512Kernels = {"avx512",       BATON_PANEL_ROWS, Bf16Arithmetic::kFloat,
                                    Matmul,         Quantize,         Attention,
                                    MergeAttention, RmsNorm,          AddRow,
                                    SiluGate,       GeluGate,         ApplyRope,
                                    StoreRow};

}  // namespace baton
