#include "engine/kv/kv_pools.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

// Full group: 2 layers x 32 bytes per token; rolling group: 1 layer, window 8.
const KvGeometry kGeometry{KvType::kF16,
                           4,
                           {{.layers = {0, 1}, .kv_heads = 1, .head_dim = 8},
                            {.layers = {2}, .kv_heads = 1, .head_dim = 8, .window_tokens = 8}}};
constexpr uint32_t kContext = 40;
constexpr uint32_t kStep = 4;
// 10 blocks of 256 bytes; ceil((8 - 1 + 4 - 1) / 4) + 1 = 4 blocks of 128.
constexpr uint64_t kSequenceBytes = 10 * 256 + 4 * 128;

class KvPoolsTest : public testing::Test {
 protected:
  std::unique_ptr<KvPools> Make(uint64_t budget) {
    auto pools = KvPools::Create(device_.get(), kGeometry, budget, kContext, kStep);
    EXPECT_TRUE(pools.ok()) << pools.status();
    return *std::move(pools);
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
};

TEST_F(KvPoolsTest, OneBudgetHoldsTheSameNumberOfSequencesInEveryGroup) {
  const auto pools = Make(3 * kSequenceBytes);
  EXPECT_EQ(pools->pool(0).blocks(), 30);
  EXPECT_EQ(pools->pool(1).blocks(), 12);
  EXPECT_EQ(pools->capacity_tokens(), 120);
  std::vector<SequenceKv> sequences;
  for (int i = 0; i < 3; ++i) {
    auto kv = pools->Reserve(kContext);
    ASSERT_TRUE(kv.ok()) << kv.status();
    EXPECT_EQ(kv->table(0).size(), 10);
    EXPECT_EQ(kv->table(1).size(), 4);
    sequences.push_back(*std::move(kv));
  }
  EXPECT_EQ(pools->Reserve(1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(KvPoolsTest, TheRestIsSplitInProportionAndNeverExceedsTheBudget) {
  for (uint64_t extra = 0; extra < kSequenceBytes; extra += 37) {
    const auto pools = Make(kSequenceBytes + extra);
    const uint64_t used = pools->pool(0).blocks() * 256 + pools->pool(1).blocks() * 128;
    EXPECT_LE(used, kSequenceBytes + extra);
    EXPECT_GT(used + 256 + 128, kSequenceBytes + extra);
  }
}

TEST_F(KvPoolsTest, ABudgetTooSmallNamesTheSmallestThatWouldDo) {
  const auto refused = KvPools::Create(device_.get(), kGeometry, kSequenceBytes - 1, kContext, kStep);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("3072"), absl::string_view::npos) << refused.status();
}

TEST_F(KvPoolsTest, WhatIsNoGeometryIsRefused) {
  KvGeometry geometry = kGeometry;
  geometry.groups[1].layers = {1};
  EXPECT_EQ(KvPools::Create(device_.get(), geometry, 1 << 20, kContext, kStep).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(KvPools::Create(device_.get(), kGeometry, 1 << 20, 0, kStep).ok());
  EXPECT_FALSE(KvPools::Create(device_.get(), kGeometry, 1 << 20, kContext, 0).ok());
}

TEST_F(KvPoolsTest, AFailedReserveTakesNothingOfAnyGroup) {
  const auto pools = Make(kSequenceBytes);
  auto small = pools->Reserve(5);  // 2 blocks of each group
  ASSERT_TRUE(small.ok());
  EXPECT_FALSE(pools->Reserve(32).ok());  // 8 of 8 in the first group, 4 of 2 in the second
  EXPECT_EQ(pools->pool(0).counts()[BlockState::kFree], 8);
  EXPECT_TRUE(pools->Fits(32));
  EXPECT_FALSE(pools->Fits(41));
}

TEST_F(KvPoolsTest, ASequenceGrowsByBlocksAndKeepsThoseItHas) {
  const auto pools = Make(kSequenceBytes);
  auto kv = pools->Reserve(6);
  ASSERT_TRUE(kv.ok());
  kv->Activate();
  const std::vector<uint32_t> first(kv->table(0).begin(), kv->table(0).end());
  EXPECT_TRUE(pools->Grow(*kv, 8).ok());
  EXPECT_EQ(kv->table(0).size(), 2);
  EXPECT_TRUE(pools->Grow(*kv, 21).ok());
  EXPECT_EQ(kv->table(0).size(), 6);
  EXPECT_EQ(kv->table(1).size(), 4);
  EXPECT_EQ(std::vector<uint32_t>(kv->table(0).begin(), kv->table(0).begin() + 2), first);
  EXPECT_EQ(pools->counts()[BlockState::kActive], 10);
  // Fewer tokens take nothing back; too many add nothing.
  EXPECT_TRUE(pools->Grow(*kv, 1).ok());
  EXPECT_EQ(pools->Grow(*kv, 41).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pools->counts()[BlockState::kActive], 10);
  EXPECT_TRUE(pools->CheckInvariants().ok());
  *kv = SequenceKv();
  EXPECT_TRUE(pools->CheckAllFree().ok());
}

TEST_F(KvPoolsTest, StatesMoveTogetherAndPinsOutliveTheSequence) {
  const auto pools = Make(kSequenceBytes);
  auto kv = pools->Reserve(6);
  ASSERT_TRUE(kv.ok());
  kv->BeginLanding();
  EXPECT_EQ(pools->counts()[BlockState::kLanding], 4);
  kv->Activate();
  EXPECT_EQ(pools->counts()[BlockState::kActive], 4);
  std::vector<BlockPin> pins = kv->Pin();
  EXPECT_EQ(pins.size(), 4);
  *kv = SequenceKv();
  EXPECT_EQ(pools->counts()[BlockState::kDraining], 4);
  const absl::Status held = pools->CheckAllFree();
  EXPECT_EQ(held.code(), absl::StatusCode::kInternal);
  EXPECT_NE(held.message().find("draining=2"), absl::string_view::npos) << held;
  pins.clear();
  EXPECT_TRUE(pools->CheckAllFree().ok());
  EXPECT_EQ(pools->counts().total(), 14);
}

TEST_F(KvPoolsTest, AMovedFromSequenceIsEmpty) {
  const auto pools = Make(kSequenceBytes);
  auto kv = pools->Reserve(4);
  ASSERT_TRUE(kv.ok());
  SequenceKv moved = std::move(*kv);
  EXPECT_FALSE(moved.empty());
  EXPECT_TRUE(kv->empty());
}

}  // namespace
}  // namespace baton
