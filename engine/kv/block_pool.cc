#include "engine/kv/block_pool.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"

namespace baton {

const char* BlockStateName(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return "free";
    case BlockState::kReserved:
      return "reserved";
    case BlockState::kLanding:
      return "landing";
    case BlockState::kActive:
      return "active";
    case BlockState::kDraining:
      return "draining";
  }
  BATON_CHECK(false);
}

uint32_t BlockCounts::total() const {
  uint32_t sum = 0;
  for (const uint32_t count : by_state) sum += count;
  return sum;
}

BlockPin& BlockPin::operator=(BlockPin&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = std::exchange(other.pool_, nullptr);
  id_ = other.id_;
  return *this;
}

void BlockPin::Reset() {
  if (BlockPool* pool = std::exchange(pool_, nullptr)) pool->DropPin(id_);
}

BlockRef& BlockRef::operator=(BlockRef&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = std::exchange(other.pool_, nullptr);
  id_ = other.id_;
  return *this;
}

void BlockRef::Reset() {
  if (BlockPool* pool = std::exchange(pool_, nullptr)) pool->Release(id_);
}

void BlockRef::BeginLanding() { pool_->Transition(id_, BlockState::kLanding); }
void BlockRef::Activate() { pool_->Transition(id_, BlockState::kActive); }

BlockPin BlockRef::Pin() const {
  pool_->AddPin(id_);
  return BlockPin(pool_, id_);
}

absl::StatusOr<std::unique_ptr<BlockPool>> BlockPool::Create(Device* device, const KvGeometry& geometry,
                                                             uint32_t group, uint32_t blocks) {
  if (blocks == 0) return absl::InvalidArgumentError("blocks: a pool of none");
  const uint64_t block_bytes = geometry.block_bytes(group);
  if (blocks > std::numeric_limits<uint64_t>::max() / block_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cache group ", group, ": ", blocks, " blocks of ", block_bytes, " bytes overflow"));
  }
  ASSIGN_OR_RETURN(DeviceBuffer memory, device->Allocate(blocks * block_bytes));
  const auto layers = static_cast<uint32_t>(geometry.groups[group].layers.size());
  return std::unique_ptr<BlockPool>(
      new BlockPool(group, blocks, layers, geometry.plane_bytes(group), std::move(memory)));
}

BlockPool::BlockPool(uint32_t group, uint32_t blocks, uint32_t layers, uint64_t plane_bytes,
                     DeviceBuffer memory)
    : group_(group),
      blocks_(blocks),
      layers_(layers),
      plane_bytes_(plane_bytes),
      memory_(std::move(memory)),
      states_(blocks) {
  MutexLock lock(&mutex_);
  free_.reserve(blocks);
  for (uint32_t id = blocks; id > 0; --id) free_.push_back(id - 1);
  counts_.by_state[static_cast<int>(BlockState::kFree)] = blocks;
}

BlockPool::~BlockPool() {
  MutexLock lock(&mutex_);
  BATON_CHECK(counts_[BlockState::kFree] == blocks_);
}

absl::StatusOr<std::vector<BlockRef>> BlockPool::Reserve(uint32_t count) {
  std::vector<BlockRef> refs;
  refs.reserve(count);
  MutexLock lock(&mutex_);
  if (count > free_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cache group ", group_, ": ", count, " blocks wanted, ", free_.size(), " free"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = free_.back();
    free_.pop_back();
    SetState(id, BlockState::kReserved);
    refs.push_back(BlockRef(this, id));
  }
  return refs;
}

BlockCounts BlockPool::counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

absl::Status BlockPool::CheckInvariants() const {
  const auto broken = [this](uint32_t id, const std::string& what) {
    return absl::InternalError(absl::StrCat("cache group ", group_, ", block ", id, ": ", what));
  };
  MutexLock lock(&mutex_);
  BlockCounts counted;
  for (uint32_t id = 0; id < blocks_; ++id) {
    const Block& block = states_[id];
    ++counted.by_state[static_cast<int>(block.state)];
    if (block.state == BlockState::kFree && block.pins != 0) {
      return broken(id, absl::StrCat("free with ", block.pins, " pins"));
    }
    if (block.state == BlockState::kDraining && block.pins == 0) return broken(id, "draining without a pin");
  }
  std::vector<bool> listed(blocks_);
  for (const uint32_t id : free_) {
    if (id >= blocks_) return broken(id, "on the free list, beyond the pool");
    if (listed[id]) return broken(id, "on the free list twice");
    if (states_[id].state != BlockState::kFree) {
      return broken(id, absl::StrCat("on the free list, ", BlockStateName(states_[id].state)));
    }
    listed[id] = true;
  }
  if (free_.size() != counted[BlockState::kFree])
    return broken(blocks_, "a free block is not on the free list");
  if (!(counted == counts_)) return broken(blocks_, "counters differ from the states");
  return absl::OkStatus();
}

DeviceSpan BlockPool::plane(uint32_t layer, uint32_t block) const {
  BATON_CHECK(layer < layers_ && block < blocks_);
  return memory_.span().subspan((uint64_t{layer} * blocks_ + block) * plane_bytes_, plane_bytes_);
}

DeviceSpan BlockPool::layer_planes(uint32_t layer) const {
  BATON_CHECK(layer < layers_);
  return memory_.span().subspan(uint64_t{layer} * blocks_ * plane_bytes_, blocks_ * plane_bytes_);
}

void BlockPool::Release(uint32_t id) {
  MutexLock lock(&mutex_);
  const Block& block = states_[id];
  BATON_CHECK(block.state != BlockState::kFree && block.state != BlockState::kDraining);
  if (block.pins > 0) {
    SetState(id, BlockState::kDraining);
    return;
  }
  SetState(id, BlockState::kFree);
  free_.push_back(id);
}

void BlockPool::Transition(uint32_t id, BlockState to) {
  MutexLock lock(&mutex_);
  const BlockState from = states_[id].state;
  BATON_CHECK(from == BlockState::kReserved || (from == BlockState::kLanding && to == BlockState::kActive));
  SetState(id, to);
}

void BlockPool::AddPin(uint32_t id) {
  MutexLock lock(&mutex_);
  BATON_CHECK(states_[id].state != BlockState::kFree);
  ++states_[id].pins;
}

void BlockPool::DropPin(uint32_t id) {
  MutexLock lock(&mutex_);
  Block& block = states_[id];
  BATON_CHECK(block.pins > 0);
  if (--block.pins > 0 || block.state != BlockState::kDraining) return;
  SetState(id, BlockState::kFree);
  free_.push_back(id);
}

void BlockPool::SetState(uint32_t id, BlockState to) {
  Block& block = states_[id];
  --counts_.by_state[static_cast<int>(block.state)];
  ++counts_.by_state[static_cast<int>(to)];
  block.state = to;
}

}  // namespace baton
