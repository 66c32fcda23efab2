#ifndef BATON_KV_TRANSFER_PINNED_KV_H_
#define BATON_KV_TRANSFER_PINNED_KV_H_

#include <cstdint>
#include <vector>

#include "engine/kv/block_pool.h"
#include "engine/kv/kv_pools.h"

namespace baton {

// The block tables of a sequence, with a pin on every block: what a transfer reads or writes, whatever
// becomes of the sequence meanwhile. Move-only. May be made on one thread and dropped on another.
struct PinnedKv {
  std::vector<std::vector<uint32_t>> tables;  // [cache group][slot], block ids
  std::vector<BlockPin> pins;

  static PinnedKv Of(const SequenceKv& kv) {
    PinnedKv pinned;
    for (uint32_t group = 0; group < kv.groups(); ++group) {
      pinned.tables.emplace_back(kv.table(group).begin(), kv.table(group).end());
    }
    pinned.pins = kv.Pin();
    return pinned;
  }
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_PINNED_KV_H_
