#ifndef BATON_ENGINE_KV_BLOCK_POOL_H_
#define BATON_ENGINE_KV_BLOCK_POOL_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "engine/device/device.h"
#include "engine/kv/kv_geometry.h"

namespace baton {

// The states of a KV block, in the order of its life. A block is in exactly one.
//
//   FREE -> RESERVED -> LANDING -> ACTIVE -> FREE         decode: reserved, filled by a handoff, read by
//   steps FREE -> RESERVED ------------> ACTIVE -> FREE         prefill, and decode that prefills by itself
//   any held state -> DRAINING -> FREE                    its owner is gone while a pin is held
enum class BlockState : uint8_t { kFree, kReserved, kLanding, kActive, kDraining };
inline constexpr int kBlockStates = 5;

// Blocks by state; the sum is always the size of the pool.
struct BlockCounts {
  uint32_t by_state[kBlockStates] = {};
  uint32_t operator[](BlockState state) const { return by_state[static_cast<int>(state)]; }
  uint32_t total() const;
  friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

const char* BlockStateName(BlockState state);  // "free", "reserved", ...: as in metrics

class BlockPool;

// Keeps a block's memory from being handed out while a step or a transfer may read or write it, whatever
// becomes of the block's owner. Move-only. May be dropped on any thread.
class BlockPin {
 public:
  BlockPin() = default;
  BlockPin(BlockPin&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}
  BlockPin& operator=(BlockPin&& other) noexcept;
  ~BlockPin() { Reset(); }
  void Reset();
  uint32_t id() const { return id_; }

 private:
  friend class BlockPool;
  friend class BlockRef;
  BlockPin(BlockPool* pool, uint32_t id) : pool_(pool), id_(id) {}
  BlockPool* pool_ = nullptr;
  uint32_t id_ = 0;
};

// The one claim on a block: dropping it gives the block back (through DRAINING while pins are held).
// Move-only. May be dropped on any thread.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(BlockRef&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}
  BlockRef& operator=(BlockRef&& other) noexcept;
  ~BlockRef() { Reset(); }
  void Reset();

  uint32_t id() const { return id_; }
  void BeginLanding();  // RESERVED -> LANDING
  void Activate();      // RESERVED or LANDING -> ACTIVE
  BlockPin Pin() const;

 private:
  friend class BlockPool;
  BlockRef(BlockPool* pool, uint32_t id) : pool_(pool), id_(id) {}
  BlockPool* pool_ = nullptr;
  uint32_t id_ = 0;
};

// The blocks of one cache group. Must outlive its claims and pins (the destructor checks that none is left).
// Thread-safe: states are guarded by a mutex; the memory itself is guarded by the states.
class BlockPool {
 public:
  // RESOURCE_EXHAUSTED when the device has no room for `blocks` of this group. `geometry` passes Check; the
  // pool keeps no reference to it.
  static absl::StatusOr<std::unique_ptr<BlockPool>> Create(Device* device, const KvGeometry& geometry,
                                                           uint32_t group, uint32_t blocks);
  ~BlockPool();

  // `count` FREE blocks, now RESERVED, or RESOURCE_EXHAUSTED and none.
  absl::StatusOr<std::vector<BlockRef>> Reserve(uint32_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  BlockCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Walks every block: states, pins, the free list and the counters must agree. INTERNAL with the block when
  // not.
  absl::Status CheckInvariants() const ABSL_LOCKS_EXCLUDED(mutex_);

  uint32_t blocks() const { return blocks_; }
  uint32_t group() const { return group_; }
  // One layer of one block: [K, V][kv_heads][block_tokens][head_dim]. `layer` counts within the group.
  DeviceSpan plane(uint32_t layer, uint32_t block) const;
  // The first block's plane of a layer; planes of one layer are plane_bytes apart.
  DeviceSpan layer_planes(uint32_t layer) const;

 private:
  friend class BlockRef;
  friend class BlockPin;
  struct Block {
    BlockState state = BlockState::kFree;
    uint32_t pins = 0;
  };

  BlockPool(uint32_t group, uint32_t blocks, uint32_t layers, uint64_t plane_bytes, DeviceBuffer memory);
  void Release(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Transition(uint32_t id, BlockState to) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddPin(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void DropPin(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetState(uint32_t id, BlockState to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t group_;
  const uint32_t blocks_;
  const uint32_t layers_;
  const uint64_t plane_bytes_;
  const DeviceBuffer memory_;

  mutable Mutex mutex_;
  std::vector<Block> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_
      ABSL_GUARDED_BY(mutex_);  // a stack; low ids on top at first, so runs stay contiguous
  BlockCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton

#endif  // BATON_ENGINE_KV_BLOCK_POOL_H_
