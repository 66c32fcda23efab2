#include "common/transfer_id.h"

#include <string>
#include <unordered_set>

#include "absl/container/flat_hash_set.h"
#include "common/seeded_random_source.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

// Returns zero `zeros` times, then 1, 2, 3 ...
class ZerosFirst final : public RandomSource {
 public:
  explicit ZerosFirst(int zeros) : zeros_(zeros) {}
  uint64_t Next() override { return zeros_-- > 0 ? 0 : ++next_; }

 private:
  int zeros_;
  uint64_t next_ = 0;
};

const std::string kBytes("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xff", 16);

TEST(TransferId, BytesGoThroughUnchangedMostSignificantFirst) {
  const absl::StatusOr<TransferId> id = TransferId::FromBytes(kBytes);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->ToBytes(), kBytes);
  EXPECT_EQ(id->ToHex(), "000102030405060708090a0b0c0d0eff");
}

TEST(TransferId, RefusesOtherLengthsAndZero) {
  for (const size_t size : {0, 8, 15, 17, 32}) {
    const absl::Status status = TransferId::FromBytes(std::string(size, 'x')).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "transfer_id: " + std::to_string(size) + " bytes, must be 16");
  }
  EXPECT_EQ(TransferId::FromBytes(std::string(16, '\0')).status().message(),
            "transfer_id: all bytes are zero");
}

TEST(TransferId, MintUsesBothHalvesAndNeverYieldsZero) {
  ZerosFirst random(4);
  EXPECT_EQ(TransferId::Mint(random).ToHex(), "00000000000000010000000000000002");
}

TEST(TransferId, OrderFollowsTheBytes) {
  const TransferId small = *TransferId::FromBytes(std::string(15, '\0') + "\x01");
  const TransferId large = *TransferId::FromBytes("\x01" + std::string(15, '\0'));
  EXPECT_LT(small, large);
  EXPECT_LT(TransferId(), small);
}

TEST(TransferId, DistinctIdsAreDistinctKeys) {
  SeededRandomSource random(1);
  absl::flat_hash_set<TransferId> absl_set;
  std::unordered_set<TransferId> std_set;
  for (int i = 0; i < 1000; ++i) {
    const TransferId id = TransferId::Mint(random);
    absl_set.insert(id);
    std_set.insert(id);
    EXPECT_TRUE(absl_set.contains(*TransferId::FromBytes(id.ToBytes())));
  }
  EXPECT_EQ(absl_set.size(), 1000u);
  EXPECT_EQ(std_set.size(), 1000u);
}

}  // namespace
}  // namespace baton
