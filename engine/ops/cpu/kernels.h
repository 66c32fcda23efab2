#ifndef BATON_ENGINE_OPS_CPU_KERNELS_H_
#define BATON_ENGINE_OPS_CPU_KERNELS_H_

#include <cstddef>
#include <cstdint>

// The inner loops of the CPU ops, one table of functions for each level of instruction set. All levels
// compute the same bits: every output is summed by one lane in one order, with fused multiply-adds where the
// code says so. This header is read by files that are compiled for a level, so it holds declarations and
// plain structs only: an inline function here could be linked from a file that a lesser processor cannot run.
namespace baton {

inline constexpr uint32_t kTileRows = 16;       // weight rows that are interleaved: the lane is the row
inline constexpr uint32_t kBlockColumns = 32;   // columns that share scales, of weights and of activations
inline constexpr uint32_t kMaxPanelRows = 12;   // of activations, in vector registers
inline constexpr uint32_t kTilePanelRows = 16;  // in tile registers
inline constexpr uint32_t kUnpackedBytes =
    20;                                   // of a column of a tile: 16 bytes, and two floats a row and block
inline constexpr uint32_t kKeyTile = 32;  // keys of an attention step, aligned to their position
inline constexpr uint32_t kMostQueryGroup = 8;      // queries that a level's attention takes at once
inline constexpr uint32_t kAttentionSegment = 256;  // positions whose attention is summed apart

// How a packed matrix stores 16 rows x 32 columns. A quad is 4 consecutive columns; byte 4 r + i of a 64-byte
// group is element i of a quad of row r. `quants` of a block:
//   4 bits: 4 groups, group j with quad j in the low and quad j + 4 in the high nibbles
//   5 bits: those, then 8 x u64, one for each quad: bit i is the fifth bit of byte i
//   8 bits: 8 groups, one for each quad
// `scales` of a block are [d | m][16]; value = d (q - zero) or d q + m. kQ6 has a d for each 16 columns: [d0
// | d1][16].
enum class PackFormat : uint8_t {
  kQ4Zero8,    // f16 d
  kQ4MinF16,   // f16 d, m
  kQ4MinF32,   // f32 d, m
  kQ5Zero16,   // f16 d
  kQ5MinF16,   // f16 d, m
  kQ5MinF32,   // f32 d, m
  kQ6Zero32,   // f32 d0, d1; 8 bits
  kQ8Zero128,  // f16 d
  kF32,        // no blocks: quants is [column][16 rows]
  kF16,        // likewise
  kBF16,       // quants is [pair of columns][16 rows][2], zeros up to a multiple of 32 columns
};

// How a level multiplies bfloat16 weights. Each is a numeric recipe of its own: the sums round in other
// orders. `a` are activations, `w` weights, `fma` is fused and rounds to the nearest, even.
enum class Bf16Arithmetic : uint8_t {
  // Float activations: sum = fma(a[i], w[i], sum), column by column. Every level can.
  kFloat,
  // Activations rounded to bfloat16, subnormal numbers as zeros. Pair by pair
  //   sum = fma(a[i], w[i], fma(a[i + 1], w[i + 1], sum)).
  // VDPBF16PS of AVX512-BF16.
  kPairs,
  // Activations rounded to bfloat16, subnormal numbers as zeros. From zero over the pairs of each 32 columns
  //   even = fma(a[i], w[i], even), odd = fma(a[i + 1], w[i + 1], odd),
  // then sum += even + odd. TDPBF16PS of AMX-BF16.
  kTiles,
};

// Rows of activations as a matmul reads them: `rows` of them side by side, int8 for each 32 columns. Where
// that is too coarse a panel is `fine`: its second half holds what the rows of the first half left, rounded
// the same way, together some 15 bits, and each output is the sum of two.
struct ActivationPanel {
  uint32_t first_row = 0;
  uint32_t rows = 0;                   // 1, 2, 4, 8, 12 or, but for kF32, kF16 and kFloat, 16; even if fine
  const int32_t* quads = nullptr;      // [columns / 4][rows], 4 x int8; of 16 rows [columns / 32][16][8]
  const float* scales = nullptr;       // [columns / 32][rows]
  const float* sums = nullptr;         // [columns / 32][rows], scale * sum of the int8
  const int32_t* negated = nullptr;    // [columns / 32][rows], minus the sum of the int8, times 16
  const int32_t* negated16 = nullptr;  // [columns / 16][rows], likewise of 16 columns, times 32
  const float* values = nullptr;       // [rows][columns], for float formats; null if fine
  const uint16_t* bf16 = nullptr;      // [rows][bf16_columns], bfloat16, for kPairs and kTiles; null if fine
  uint64_t bf16_columns = 0;           // columns up to a multiple of 32
  bool fine = false;
};

struct MatmulArgs {
  PackFormat format = PackFormat::kF32;
  const std::byte* quants = nullptr;  // [tile][block]
  const std::byte* scales = nullptr;  // [tile][block]
  uint64_t tile_quant_bytes = 0;
  uint64_t tile_scale_bytes = 0;
  uint32_t columns = 0;
  uint32_t rows = 0;  // of the matrix; the last tile may have fewer than 16
  uint32_t first_tile = 0;
  uint32_t end_tile = 0;
  const ActivationPanel* panels = nullptr;
  uint32_t panel_count = 0;
  float* out = nullptr;     // [panel row][out_stride]
  uint64_t out_stride = 0;  // floats
  bool accumulate = false;  // out += instead of out =
  // Room for one tile, unpacked: kUnpackedBytes for each column, aligned to 64 bytes.
  std::byte* unpacked = nullptr;
};

// A row of activations quantised into its place in a panel of `rows`.
struct QuantizeArgs {
  const float* values = nullptr;  // [columns], a multiple of 32
  uint32_t columns = 0;
  uint32_t rows = 0;
  int32_t* quads = nullptr;
  uint32_t quad_stride = 0;  // words from a quad of a block to the next
  float* scales = nullptr;
  float* sums = nullptr;
  int32_t* negated = nullptr;
  int32_t* negated16 = nullptr;
  float* rest = nullptr;  // [columns], value - scale * int8; null: not wanted
};

enum class StoredType : uint8_t { kF32, kF16, kBF16 };

// Consecutive rows of one sequence and some of the query heads that share a KV head.
struct AttentionArgs {
  const float* query = nullptr;  // [rows][row_stride], heads from here
  float* out = nullptr;          // the same shape
  uint64_t row_stride = 0;       // floats
  uint32_t rows = 0;
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  uint32_t width = 0;     // head_dim rounded up to 32
  uint32_t position = 0;  // of the first row
  uint32_t window = 0;    // 0 = all
  float scale = 0;
  StoredType type = StoredType::kF32;
  const std::byte* keys = nullptr;    // this KV head's first key in block 0
  const std::byte* values = nullptr;  // and its first value
  uint64_t block_stride = 0;          // bytes
  const uint32_t* table = nullptr;
  uint32_t table_size = 0;
  uint32_t block_tokens = 0;
  uint32_t begin = 0;  // only keys from here on,
  uint32_t end = 0;    // to here
  // Null: attends to all segments and writes `out`. Else [begin, end) is within one segment, whose state goes
  // here: q states, for MergeArgs.
  float* partial = nullptr;
  // With q = rows * heads rounded up to kMostQueryGroup: 288 width + q (3 width + 304) floats.
  float* scratch = nullptr;
};

// The states of one item's segments, as `attention` left them, to its output.
struct MergeArgs {
  float* partials = nullptr;  // [segments][rows * heads][width + 16]; overwritten
  uint32_t segments = 0;
  uint32_t rows = 0;
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  uint32_t width = 0;    // head_dim rounded up to 32
  float* out = nullptr;  // [rows][row_stride]
  uint64_t row_stride = 0;
};

struct KernelTable {
  const char* name;
  uint32_t panel_rows;  // the widest panel that pays, 2 at least; of formats of floats kMaxPanelRows at most
  Bf16Arithmetic bf16;

  void (*matmul)(const MatmulArgs& args);
  void (*quantize)(const QuantizeArgs& args);
  void (*attention)(const AttentionArgs& args);
  void (*merge_attention)(const MergeArgs& args);
  // out = in / rms(in) * weight; may be in place
  void (*rms_norm)(const float* in, const float* weight, float epsilon, uint32_t count, float* out);
  void (*add)(const float* in, uint32_t count, float* out);
  void (*silu_gate)(const float* gate, const float* up, uint32_t count, float* out);
  void (*gelu_gate)(const float* gate, const float* up, uint32_t count, float* out);
  // Rotates pairs (i, i + pairs), or (2i, 2i + 1) when interleaved.
  void (*rope)(const float* cos, const float* sin, uint32_t pairs, bool interleaved, float* head);
  void (*store)(const float* in, uint32_t count, StoredType type, std::byte* out);
};

extern const KernelTable kPortableKernels;
extern const KernelTable kAvx2Kernels;    // AVX2, FMA, F16C
extern const KernelTable kAvx512Kernels;  // AVX-512 F, BW, DQ, VL, VNNI

// Matmul for AVX-512 and AVX512-BF16: bfloat16 weights as Bf16Arithmetic::kPairs, others as kAvx512Kernels
// does.
void Avx512Bf16Matmul(const MatmulArgs& args);
// Matmul for AVX-512, AMX-INT8 and AMX-BF16: blocks by panels of 16 rows with tile registers, bfloat16
// weights as Bf16Arithmetic::kTiles, others as kAvx512Kernels does.
void AmxMatmul(const MatmulArgs& args);
// The same code with tile instructions as loops, for tests where no processor has them.
void EmulatedAmxMatmul(const MatmulArgs& args);

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_KERNELS_H_
