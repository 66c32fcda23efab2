#include "router/answer_streams.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

v1::GenerateStreamResponse Delta(uint32_t index, std::string text) {
  v1::GenerateStreamResponse response;
  response.set_index(index);
  response.set_count(1);
  response.set_text(std::move(text));
  response.add_tokens(index + 100);
  return response;
}

TEST(MergeAnswer, AddsTokensAndTextAndKeepsTheFirstIndex) {
  v1::GenerateStreamResponse last = Delta(3, "a");
  ASSERT_TRUE(MergeAnswer(&last, Delta(4, "b")));
  v1::GenerateStreamResponse end;
  end.set_text("!");
  end.mutable_finish()->set_reason(v1::FINISH_REASON_TIME_LIMIT);
  ASSERT_TRUE(MergeAnswer(&last, end));
  EXPECT_EQ(last.index(), 3);
  EXPECT_EQ(last.count(), 2);
  EXPECT_EQ(last.text(), "ab!");
  EXPECT_EQ(last.tokens_size(), 2);
  EXPECT_EQ(last.finish().reason(), v1::FINISH_REASON_TIME_LIMIT);
}

TEST(MergeAnswer, AMessageGrowsToABound) {
  v1::GenerateStreamResponse last = Delta(0, "a");
  uint32_t merged = 1;
  while (MergeAnswer(&last, Delta(merged, "a"))) ++merged;
  EXPECT_EQ(merged, 256);
  EXPECT_EQ(last.count(), 256);
}

}  // namespace
}  // namespace baton
