#include <set>

#include "common/seeded_random_source.h"
#include "common/system_random_source.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(SeededRandomSource, IsTheGeneratorOfTheStandard) {
  // [rand.predef]: the 10000th invocation of a default-seeded mt19937_64.
  SeededRandomSource random(5489);
  uint64_t last = 0;
  for (int i = 0; i < 10000; ++i) last = random.Next();
  EXPECT_EQ(last, 9981545732273789042u);
}

TEST(SystemRandomSource, DoesNotRepeatAndUsesEveryBit) {
  SystemRandomSource random;
  std::set<uint64_t> seen;
  uint64_t ones = 0;
  uint64_t zeros = 0;
  for (int i = 0; i < 256; ++i) {
    const uint64_t bits = random.Next();
    seen.insert(bits);
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(seen.size(), 256u);
  EXPECT_EQ(ones, ~uint64_t{0});
  EXPECT_EQ(zeros, ~uint64_t{0});
}

}  // namespace
}  // namespace baton
