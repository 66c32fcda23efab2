#ifndef BATON_KV_TRANSFER_PIECE_COALESCER_H_
#define BATON_KV_TRANSFER_PIECE_COALESCER_H_

#include <cstdint>
#include <vector>

#include "engine/kv/kv_geometry.h"
#include "engine/kv/ranges.h"
#include "kv_transfer/transfer_plan.h"

namespace baton {

// Sizes of pieces in bytes.
struct PieceLimits {
  uint64_t min_bytes = 64 << 10;  // smaller ones are held back for neighbours, until Flush
  uint64_t max_bytes = 1 << 20;   // larger ones are cut; a single token of one layer is never cut
};

// Turns what was computed into pieces worth sending: intersects it with what is wanted, joins rectangles that
// share an edge, holds back what is still smaller than min_bytes (a short chunk waits for its next layers, or
// for the same layers of the next chunk), and cuts what is larger than max_bytes: between layers first, then
// between blocks. Each cell computed appears in exactly one piece. Ids are the caller's. A value type.
class PieceCoalescer {
 public:
  // `wanted` is by cache group. `align_tokens` is where tokens are cut, a power of two: the larger of the two
  // block sizes.
  PieceCoalescer(const KvGeometry& geometry, std::vector<TokenRange> wanted, uint32_t align_tokens,
                 PieceLimits limits);

  std::vector<KvPiece> Computed(LayerRange model_layers, TokenRange tokens);
  // Everything held back.
  std::vector<KvPiece> Flush();
  bool empty() const { return held_.empty(); }

 private:
  void Cut(const KvPiece& piece, std::vector<KvPiece>* pieces) const;

  const KvGeometry geometry_;
  const std::vector<TokenRange> wanted_;
  const uint32_t align_tokens_;
  const PieceLimits limits_;
  std::vector<KvPiece> held_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_PIECE_COALESCER_H_
