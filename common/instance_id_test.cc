#include "common/instance_id.h"

#include "absl/container/flat_hash_set.h"
#include "common/seeded_random_source.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

class Constant final : public RandomSource {
 public:
  explicit Constant(uint64_t value) : value_(value) {}
  uint64_t Next() override { return value_; }

 private:
  const uint64_t value_;
};

TEST(InstanceId, MintsVersion4) {
  Constant ones(~uint64_t{0});
  Constant zeros(0);
  EXPECT_EQ(InstanceId::Mint(ones).text(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(InstanceId::Mint(zeros).text(), "00000000-0000-4000-8000-000000000000");
}

TEST(InstanceId, TextGoesThroughUnchanged) {
  SeededRandomSource random(1);
  absl::flat_hash_set<InstanceId> seen;
  for (int i = 0; i < 100; ++i) {
    const InstanceId id = InstanceId::Mint(random);
    const absl::StatusOr<InstanceId> parsed = InstanceId::FromText(id.text());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, id);
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(InstanceId, RefusesEverythingElse) {
  for (const char* text : {"", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-0000000000000",
                           "00000000x0000-4000-8000-000000000000", "0000000g-0000-4000-8000-000000000000",
                           "0000000A-0000-4000-8000-000000000000", "000000000-000-4000-8000-000000000000"}) {
    EXPECT_EQ(InstanceId::FromText(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace baton
