#include "engine/kv/kv_pools.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr uint64_t kMaxBlocks = std::numeric_limits<uint32_t>::max();

// Blocks of each group that `budget_bytes` buys: as many whole sequences as fit, then as much of one more as
// fits.
std::vector<uint64_t> SplitBudget(const KvGeometry& geometry, uint64_t budget_bytes, uint64_t sequence_bytes,
                                  const std::vector<uint32_t>& sequence_blocks) {
  const uint64_t sequences = budget_bytes / sequence_bytes;
  const uint64_t rest = budget_bytes % sequence_bytes;
  std::vector<uint64_t> blocks;
  for (uint32_t group = 0; group < sequence_blocks.size(); ++group) {
    const uint64_t whole = sequences * sequence_blocks[group];
    // Rounded down in each group, so the sum stays within the rest. 128 bits: both factors may be large.
    const auto part =
        static_cast<uint64_t>(static_cast<unsigned __int128>(rest) * sequence_blocks[group] / sequence_bytes);
    blocks.push_back(std::min(whole + part, kMaxBlocks));
  }
  return blocks;
}

}  // namespace

SequenceKv::SequenceKv(std::vector<std::vector<BlockRef>> groups) : refs_(std::move(groups)) {
  for (const std::vector<BlockRef>& refs : refs_) {
    std::vector<uint32_t>& table = tables_.emplace_back();
    table.reserve(refs.size());
    for (const BlockRef& ref : refs) table.push_back(ref.id());
  }
}

void SequenceKv::BeginLanding() {
  for (std::vector<BlockRef>& refs : refs_) {
    for (BlockRef& ref : refs) ref.BeginLanding();
  }
}

void SequenceKv::Activate() {
  for (std::vector<BlockRef>& refs : refs_) {
    for (BlockRef& ref : refs) ref.Activate();
  }
}

void SequenceKv::Append(uint32_t group, std::vector<BlockRef> blocks) {
  for (BlockRef& block : blocks) {
    block.Activate();
    tables_[group].push_back(block.id());
    refs_[group].push_back(std::move(block));
  }
}

std::vector<BlockPin> SequenceKv::Pin() const {
  std::vector<BlockPin> pins;
  for (const std::vector<BlockRef>& refs : refs_) {
    for (const BlockRef& ref : refs) pins.push_back(ref.Pin());
  }
  return pins;
}

absl::StatusOr<std::unique_ptr<KvPools>> KvPools::Create(Device* device, const KvGeometry& geometry,
                                                         uint64_t budget_bytes, uint32_t context_tokens,
                                                         uint32_t max_step_tokens) {
  RETURN_IF_ERROR(geometry.Check());
  if (context_tokens == 0) return absl::InvalidArgumentError("context_tokens is 0, must be at least 1");
  if (max_step_tokens == 0) return absl::InvalidArgumentError("max_step_tokens is 0, must be at least 1");
  std::vector<uint32_t> sequence_blocks;
  uint64_t sequence_bytes = 0;
  for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
    const uint64_t blocks = geometry.BlocksFor(group, context_tokens, max_step_tokens);
    sequence_blocks.push_back(static_cast<uint32_t>(blocks));
    const uint64_t bytes_left = std::numeric_limits<uint64_t>::max() - sequence_bytes;
    if (blocks > bytes_left / geometry.block_bytes(group)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the KV of ", context_tokens, " tokens is larger than 64 bits can count"));
    }
    sequence_bytes += blocks * geometry.block_bytes(group);
  }
  if (budget_bytes < sequence_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a KV budget of ", budget_bytes,
                                                     " bytes holds no sequence of ", context_tokens,
                                                     " tokens, which takes ", sequence_bytes));
  }
  const std::vector<uint64_t> blocks = SplitBudget(geometry, budget_bytes, sequence_bytes, sequence_blocks);
  std::vector<std::unique_ptr<BlockPool>> pools;
  for (uint32_t group = 0; group < blocks.size(); ++group) {
    ASSIGN_OR_RETURN(auto pool,
                     BlockPool::Create(device, geometry, group, static_cast<uint32_t>(blocks[group])));
    pools.push_back(std::move(pool));
  }
  return std::unique_ptr<KvPools>(new KvPools(geometry, max_step_tokens, std::move(pools)));
}

KvPools::KvPools(KvGeometry geometry, uint32_t max_step_tokens, std::vector<std::unique_ptr<BlockPool>> pools)
    : geometry_(std::move(geometry)), max_step_tokens_(max_step_tokens), pools_(std::move(pools)) {}

absl::StatusOr<SequenceKv> KvPools::Reserve(uint32_t tokens) {
  std::vector<std::vector<BlockRef>> refs;
  for (uint32_t group = 0; group < groups(); ++group) {
    ASSIGN_OR_RETURN(auto claimed,
                     pools_[group]->Reserve(geometry_.BlocksFor(group, tokens, max_step_tokens_)));
    refs.push_back(std::move(claimed));
  }
  return SequenceKv(std::move(refs));
}

absl::Status KvPools::Grow(SequenceKv& kv, uint32_t tokens) {
  const std::vector<uint32_t> needed = BlocksFor(tokens);
  std::vector<std::vector<BlockRef>> more(groups());
  for (uint32_t group = 0; group < groups(); ++group) {
    const size_t held = kv.table(group).size();
    if (needed[group] <= held) continue;
    ASSIGN_OR_RETURN(more[group], pools_[group]->Reserve(needed[group] - static_cast<uint32_t>(held)));
  }
  for (uint32_t group = 0; group < groups(); ++group) kv.Append(group, std::move(more[group]));
  return absl::OkStatus();
}

std::vector<uint32_t> KvPools::BlocksFor(uint32_t tokens) const {
  std::vector<uint32_t> blocks;
  for (uint32_t group = 0; group < groups(); ++group) {
    blocks.push_back(geometry_.BlocksFor(group, tokens, max_step_tokens_));
  }
  return blocks;
}

bool KvPools::Fits(uint32_t tokens) const {
  const std::vector<uint32_t> needed = BlocksFor(tokens);
  for (uint32_t group = 0; group < groups(); ++group) {
    if (needed[group] > pools_[group]->blocks()) return false;
  }
  return true;
}

uint64_t KvPools::capacity_tokens() const {
  uint64_t smallest = std::numeric_limits<uint64_t>::max();
  bool full_seen = false;
  for (uint32_t group = 0; group < groups(); ++group) {
    const bool full = geometry_.groups[group].window_tokens == 0;
    if (full_seen && !full) continue;
    const uint64_t tokens = uint64_t{pools_[group]->blocks()} * geometry_.block_tokens;
    smallest = full && !full_seen ? tokens : std::min(smallest, tokens);
    full_seen = full_seen || full;
  }
  return smallest;
}

BlockCounts KvPools::counts() const {
  BlockCounts sum;
  for (const auto& pool : pools_) {
    const BlockCounts counts = pool->counts();
    for (int state = 0; state < kBlockStates; ++state) sum.by_state[state] += counts.by_state[state];
  }
  return sum;
}

absl::Status KvPools::CheckInvariants() const {
  for (const auto& pool : pools_) RETURN_IF_ERROR(pool->CheckInvariants());
  return absl::OkStatus();
}

absl::Status KvPools::CheckAllFree() const {
  RETURN_IF_ERROR(CheckInvariants());
  for (const auto& pool : pools_) {
    const BlockCounts counts = pool->counts();
    if (counts[BlockState::kFree] == counts.total()) continue;
    std::string held;
    for (int i = 1; i < kBlockStates; ++i) {
      const auto state = static_cast<BlockState>(i);
      absl::StrAppend(&held, " ", BlockStateName(state), "=", counts[state]);
    }
    return absl::InternalError(
        absl::StrCat("cache group ", pool->group(), ": not all blocks are free:", held));
  }
  return absl::OkStatus();
}

}  // namespace baton
