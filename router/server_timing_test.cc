#include "router/server_timing.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(ServerTiming, ListsTheDurationsThatArePresent) {
  v1::Timings timings;
  EXPECT_EQ(FormatServerTiming(timings), "");
  timings.set_ttft_ms(12.3456);
  timings.set_router_queue_ms(0);
  timings.set_kv_bytes(1e9);
  EXPECT_EQ(FormatServerTiming(timings), "ttft;dur=12.346, router_queue;dur=0.000");
}

}  // namespace
}  // namespace baton
