#include "client/progress_bar.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(ProgressLine, ShowsPartCountAndTimeLeft) {
  EXPECT_EQ(ProgressLine(0, 0, 8, absl::ZeroDuration(), 8), "[--------]   0% 0/8");
  EXPECT_EQ(ProgressLine(4, 1, 8, absl::Seconds(3), 8), "[####----]  50% 4/8, 1 failed, 3 s left");
  EXPECT_EQ(ProgressLine(7, 0, 8, absl::Seconds(7), 8), "[#######-]  87% 7/8, 1 s left");
  EXPECT_EQ(ProgressLine(8, 0, 8, absl::Seconds(9), 8), "[########] 100% 8/8");
}

}  // namespace
}  // namespace baton
