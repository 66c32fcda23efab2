#include "engine/ops/cpu/rope_tables.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

// Llama 3.2: base 500,000 over 64 dimensions, slow pairs stretched by up to 32. The expected values are those
// of Python's math module at position 1,000.
TEST(RopeTableTest, DividesEachPairsFrequency) {
  Rope rope = {.base = 500000, .dims = 64};
  rope.divisors.assign(32, 1);
  rope.divisors[20] = 32;
  rope.divisors[31] = 32;
  RopeTable table(rope);
  table.Resize(1);
  table.Fill(0, 1000);
  EXPECT_NEAR(table.cos(0)[0], 0.562379076, 1e-6);
  EXPECT_NEAR(table.sin(0)[0], 0.826879541, 1e-6);
  EXPECT_NEAR(table.cos(0)[13], 0.126690983, 1e-6);
  EXPECT_NEAR(table.sin(0)[13], -0.991942234, 1e-6);
  EXPECT_NEAR(table.cos(0)[20], 0.999963276, 1e-6);
  EXPECT_NEAR(table.sin(0)[20], 0.008570151, 1e-6);
  EXPECT_NEAR(table.cos(0)[31], 0.999999996, 1e-6);
  EXPECT_NEAR(table.sin(0)[31], 0.000094183, 1e-6);
}

}  // namespace
}  // namespace baton
