#ifndef BATON_KV_TRANSFER_TRANSFER_PLAN_H_
#define BATON_KV_TRANSFER_TRANSFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/kv_geometry.h"
#include "engine/kv/ranges.h"

// Which bytes of a pool a piece of a transfer is. Pure functions; docs/kv_wire_format.md explains the order.
namespace baton {

// A rectangle of one cache group: consecutive layers of the group by consecutive tokens.
struct KvPiece {
  uint32_t id = 0;  // unique within the transfer
  uint32_t group = 0;
  LayerRange layers;  // within the group
  TokenRange tokens;

  friend bool operator==(const KvPiece&, const KvPiece&) = default;
};

// The unit in which both sides walk a piece: the smaller of their block sizes, both powers of two.
uint32_t SegmentTokens(uint32_t block_tokens, uint32_t peer_block_tokens);

// OK when the piece is a non-empty rectangle of a group of `geometry`. Its tokens are not compared with
// anything.
absl::Status CheckPiece(const KvGeometry& geometry, const KvPiece& piece);

// Of a piece that CheckPiece accepts.
uint64_t PieceBytes(const KvGeometry& geometry, const KvPiece& piece);

// Where the bytes of a piece lie in a pool, in the canonical order: layer, segment of tokens (aligned at
// multiples of `segment_tokens`; the first and the last may be partial), K then V, head, token, element.
// Neighbours in memory are merged, so that equal block sizes give one span per run of whole blocks. `table`
// holds block ids by slot, token t in slot (t / block_tokens) % size; the piece's tokens must not wrap onto
// each other in it (TokensFit).
std::vector<DeviceSpan> PieceSpans(const KvGeometry& geometry, const BlockPool& pool,
                                   absl::Span<const uint32_t> table, uint32_t segment_tokens,
                                   const KvPiece& piece);

// Whether a table of `slots` blocks holds all of `tokens` at once.
bool TokensFit(uint32_t block_tokens, size_t slots, TokenRange tokens);

// The KV that decode needs of a prompt, by cache group.
std::vector<TokenRange> WantedAfter(const KvGeometry& geometry, uint32_t prompt_tokens);

// Bytes of `wanted` over all layers of all groups.
uint64_t WantedBytes(const KvGeometry& geometry, absl::Span<const TokenRange> wanted);

}  // namespace baton

#endif  // BATON_KV_TRANSFER_TRANSFER_PLAN_H_
