#include "common/request_id.h"

#include <set>

#include "common/seeded_random_source.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(RequestId, IsHexadecimalAndReplayable) {
  SeededRandomSource random(3);
  SeededRandomSource again(3);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string id = NewRequestId(random);
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(NewRequestId(again), id);
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace baton
