#include "engine/sampling/philox.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

// The known answers that the authors' Random123 library is tested with.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformAt, TakesTheTopBitsOfTheFirstTwoWords) {
  EXPECT_EQ(UniformAt(0, 0), static_cast<double>(0x6627e8d5e169c58d >> 11) / 9007199254740992.0);
}

TEST(UniformAt, EveryBitOfSeedAndPositionMatters) {
  const double base = UniformAt(12345, 678);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(UniformAt(12345 ^ (uint64_t{1} << bit), 678), base);
    EXPECT_NE(UniformAt(12345, 678 ^ (uint64_t{1} << bit)), base);
  }
}

TEST(UniformAt, IsUniformOverPositionsAndOverSeeds) {
  constexpr int kDraws = 20000;
  constexpr int kBins = 20;
  int by_position[kBins] = {};
  int by_seed[kBins] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double a = UniformAt(7, i);
    const double b = UniformAt(i, 7);
    ASSERT_TRUE(a >= 0 && a < 1 && b >= 0 && b < 1);
    ++by_position[static_cast<int>(a * kBins)];
    ++by_seed[static_cast<int>(b * kBins)];
  }
  for (const auto* bins : {by_position, by_seed}) {
    double chi_square = 0;
    for (int i = 0; i < kBins; ++i) {
      const double difference = bins[i] - kDraws / kBins;
      chi_square += difference * difference / (kDraws / kBins);
    }
    EXPECT_LT(chi_square, 43.8);  // 99.9 % quantile, 19 degrees of freedom
  }
}

}  // namespace
}  // namespace baton
