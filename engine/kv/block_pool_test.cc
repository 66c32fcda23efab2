#include "engine/kv/block_pool.h"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "gtest/gtest.h"

namespace baton {
namespace {

const KvGeometry kGeometry{KvType::kF32, 4, {{.layers = {0, 1, 2}, .kv_heads = 2, .head_dim = 3}}};

class BlockPoolTest : public testing::Test {
 protected:
  std::unique_ptr<BlockPool> MakePool(uint32_t blocks) {
    auto pool = BlockPool::Create(device_.get(), kGeometry, 0, blocks);
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
};

TEST_F(BlockPoolTest, PlanesTileTheMemoryLayerByLayer) {
  const auto pool = MakePool(5);
  const uint64_t plane = kGeometry.plane_bytes(0);
  const std::byte* base = pool->plane(0, 0).data;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(pool->layer_planes(layer).data, pool->plane(layer, 0).data);
    EXPECT_EQ(pool->layer_planes(layer).bytes, 5 * plane);
    for (uint32_t block = 0; block < 5; ++block) {
      EXPECT_EQ(pool->plane(layer, block).data - base, (layer * 5 + block) * plane);
      EXPECT_EQ(pool->plane(layer, block).bytes, plane);
    }
  }
}

TEST_F(BlockPoolTest, ReserveTakesAllOrNothingAndLowIdsFirst) {
  const auto pool = MakePool(4);
  auto three = pool->Reserve(3);
  ASSERT_TRUE(three.ok());
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ((*three)[i].id(), i);
  EXPECT_EQ(pool->Reserve(2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->counts()[BlockState::kFree], 1);
  EXPECT_EQ(pool->counts()[BlockState::kReserved], 3);
  three->clear();
  EXPECT_TRUE(pool->Reserve(4).ok());
}

TEST_F(BlockPoolTest, APinnedBlockDrainsAndIsNotHandedOut) {
  const auto pool = MakePool(1);
  auto refs = pool->Reserve(1);
  ASSERT_TRUE(refs.ok());
  (*refs)[0].BeginLanding();
  BlockPin first = (*refs)[0].Pin();
  BlockPin second = (*refs)[0].Pin();
  refs->clear();
  EXPECT_EQ(pool->counts()[BlockState::kDraining], 1);
  EXPECT_FALSE(pool->Reserve(1).ok());
  first.Reset();
  EXPECT_EQ(pool->counts()[BlockState::kDraining], 1);
  second = BlockPin();
  EXPECT_EQ(pool->counts()[BlockState::kFree], 1);
  EXPECT_TRUE(pool->CheckInvariants().ok());
}

TEST_F(BlockPoolTest, MovedFromClaimsHoldNothing) {
  const auto pool = MakePool(2);
  auto refs = pool->Reserve(2);
  ASSERT_TRUE(refs.ok());
  BlockRef a = std::move((*refs)[0]);
  refs->erase(refs->begin());
  EXPECT_EQ(pool->counts()[BlockState::kReserved], 2);
  a = std::move((*refs)[0]);  // gives the first one back
  EXPECT_EQ(pool->counts()[BlockState::kReserved], 1);
  EXPECT_EQ(a.id(), 1);
  a.Reset();
  a.Reset();
  EXPECT_EQ(pool->counts()[BlockState::kFree], 2);
}

TEST_F(BlockPoolTest, BrokenUseAborts) {
  const auto pool = MakePool(1);
  auto refs = pool->Reserve(1);
  ASSERT_TRUE(refs.ok());
  (*refs)[0].Activate();
  EXPECT_DEATH((*refs)[0].BeginLanding(), "broken invariant");
  EXPECT_DEATH(pool->plane(0, 1), "broken invariant");
  EXPECT_DEATH(pool->plane(3, 0), "broken invariant");
}

// The pool against a model that is only a map from block to (state, pins).
TEST_F(BlockPoolTest, RandomOperationsAgreeWithAModel) {
  struct Model {
    BlockState state;
    int pins = 0;
  };
  std::mt19937 random(7);
  const auto pool = MakePool(13);
  std::vector<BlockRef> refs;
  std::vector<BlockPin> pins;
  std::map<uint32_t, Model> held;  // blocks that are not free
  const auto settle = [&held](uint32_t id) {
    if (held.at(id).state == BlockState::kDraining && held.at(id).pins == 0) held.erase(id);
  };
  for (int step = 0; step < 20000; ++step) {
    const size_t pick = refs.empty() ? 0 : random() % refs.size();
    switch (random() % 6) {
      case 0: {
        const uint32_t count = random() % 5;
        auto claimed = pool->Reserve(count);
        ASSERT_EQ(claimed.ok(), count <= 13 - held.size());
        if (!claimed.ok()) break;
        for (BlockRef& ref : *claimed) {
          ASSERT_TRUE(held.emplace(ref.id(), Model{BlockState::kReserved}).second) << "handed out twice";
          refs.push_back(std::move(ref));
        }
        break;
      }
      case 1:
        if (refs.empty() || held.at(refs[pick].id()).state != BlockState::kReserved) break;
        refs[pick].BeginLanding();
        held.at(refs[pick].id()).state = BlockState::kLanding;
        break;
      case 2:
        if (refs.empty() || held.at(refs[pick].id()).state == BlockState::kActive) break;
        refs[pick].Activate();
        held.at(refs[pick].id()).state = BlockState::kActive;
        break;
      case 3:
        if (refs.empty()) break;
        pins.push_back(refs[pick].Pin());
        ++held.at(refs[pick].id()).pins;
        break;
      case 4: {
        if (refs.empty()) break;
        const uint32_t id = refs[pick].id();
        refs.erase(refs.begin() + pick);
        held.at(id).state = BlockState::kDraining;
        settle(id);
        break;
      }
      case 5: {
        if (pins.empty()) break;
        const size_t pin = random() % pins.size();
        const uint32_t id = pins[pin].id();
        pins.erase(pins.begin() + pin);
        --held.at(id).pins;
        settle(id);
        break;
      }
    }
    BlockCounts expected;
    expected.by_state[0] = 13 - held.size();
    for (const auto& [id, model] : held) ++expected.by_state[static_cast<int>(model.state)];
    ASSERT_EQ(pool->counts(), expected);
    ASSERT_EQ(pool->counts().total(), 13);
    ASSERT_TRUE(pool->CheckInvariants().ok()) << pool->CheckInvariants();
  }
}

TEST_F(BlockPoolTest, ClaimsAndPinsMayBeDroppedOnOtherThreads) {
  const auto pool = MakePool(16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool] {
      for (int i = 0; i < 500; ++i) {
        auto refs = pool->Reserve(3);
        if (!refs.ok()) continue;
        BlockPin pin = (*refs)[0].Pin();
        (*refs)[1].Activate();
        std::thread([moved = std::move(*refs)]() mutable { moved.clear(); }).join();
        EXPECT_TRUE(pool->CheckInvariants().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->counts()[BlockState::kFree], 16);
}

}  // namespace
}  // namespace baton
