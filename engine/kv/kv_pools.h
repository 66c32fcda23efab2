#ifndef BATON_ENGINE_KV_KV_POOLS_H_
#define BATON_ENGINE_KV_KV_POOLS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/kv_geometry.h"

namespace baton {

// A sequence's claims: one block table per cache group. Move-only; dropping it frees every block.
//
// Token t of a group lives in table slot (t / block_tokens) % table size: a full group's table is long enough
// that the modulo never wraps, a rolling one's wraps onto blocks that have left the window.
class SequenceKv {
 public:
  SequenceKv() = default;
  explicit SequenceKv(std::vector<std::vector<BlockRef>> groups);

  bool empty() const { return tables_.empty(); }
  // Block ids by table slot.
  absl::Span<const uint32_t> table(uint32_t group) const { return tables_[group]; }
  uint32_t groups() const { return static_cast<uint32_t>(tables_.size()); }

  void BeginLanding();
  void Activate();
  // ACTIVE blocks at the end of a group's table, which has not wrapped yet.
  void Append(uint32_t group, std::vector<BlockRef> blocks);
  // Pins on every block, for a step or a transfer that may outlive this claim.
  std::vector<BlockPin> Pin() const;

 private:
  std::vector<std::vector<BlockRef>> refs_;    // [group][slot]
  std::vector<std::vector<uint32_t>> tables_;  // [group][slot], the ids of refs_
};

// Every pool of a worker: one per cache group, sized together from one byte budget. Thread-safe, like
// BlockPool.
class KvPools {
 public:
  // Splits `budget_bytes` so that every group holds the same number of sequences of `context_tokens` tokens,
  // at least one; what is left after whole sequences is split in the same proportion. INVALID_ARGUMENT when
  // `geometry` is none; RESOURCE_EXHAUSTED with the smallest budget that would do when it holds no sequence,
  // or when the device has no room.
  static absl::StatusOr<std::unique_ptr<KvPools>> Create(Device* device, const KvGeometry& geometry,
                                                         uint64_t budget_bytes, uint32_t context_tokens,
                                                         uint32_t max_step_tokens);

  // Blocks for a sequence of `tokens` tokens in every group, or RESOURCE_EXHAUSTED and none.
  absl::StatusOr<SequenceKv> Reserve(uint32_t tokens);
  // Adds ACTIVE blocks to `kv`, which is ACTIVE, until they do for `tokens` tokens; or RESOURCE_EXHAUSTED,
  // and none is added.
  absl::Status Grow(SequenceKv& kv, uint32_t tokens);
  // Blocks of each group for a sequence of `tokens` tokens.
  std::vector<uint32_t> BlocksFor(uint32_t tokens) const;
  // Whether Reserve could ever succeed for `tokens`, with everything free.
  bool Fits(uint32_t tokens) const;

  const KvGeometry& geometry() const { return geometry_; }
  uint32_t max_step_tokens() const { return max_step_tokens_; }
  BlockPool& pool(uint32_t group) const { return *pools_[group]; }
  uint32_t groups() const { return static_cast<uint32_t>(pools_.size()); }
  uint64_t capacity_tokens()
      const;  // tokens of context that the full-attention pool holds (the smallest pool's, if none)
  absl::Status CheckInvariants() const;
  // Blocks of all groups together, by state: the sums that metrics show.
  BlockCounts counts() const;
  // CheckInvariants, and every block FREE: what must hold once no request is left.
  absl::Status CheckAllFree() const;

 private:
  KvPools(KvGeometry geometry, uint32_t max_step_tokens, std::vector<std::unique_ptr<BlockPool>> pools);

  const KvGeometry geometry_;
  const uint32_t max_step_tokens_;
  const std::vector<std::unique_ptr<BlockPool>> pools_;
};

}  // namespace baton

#endif  // BATON_ENGINE_KV_KV_POOLS_H_
