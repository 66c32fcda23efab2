#include "engine/ops/cpu/attention_items.h"

#include <map>
#include <tuple>

#include "gtest/gtest.h"

namespace baton {
namespace {

// Every (row, head) of every sequence is in one item, with its own KV head, whatever the threads.
TEST(AttentionItemsTest, EveryRowAndHeadIsInOneItem) {
  Batch batch;
  uint32_t first_row = 0;
  for (const uint32_t rows : {1u, 40u, 3u}) {
    BatchSequence& sequence = batch.sequences.emplace_back();
    sequence.first_row = first_row;
    sequence.rows = rows;
    first_row += rows;
  }
  batch.tokens.resize(first_row);
  for (const auto& [heads, kv_heads] :
       {std::pair{9u, 3u}, std::pair{4u, 1u}, std::pair{2u, 2u}, std::pair{128u, 1u}}) {
    for (const uint32_t threads : {1u, 2u, 3u, 64u}) {
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> seen;
      for (const AttentionItem& item : CutAttention(batch, heads, kv_heads, threads)) {
        EXPECT_GT(item.rows * item.heads, 0u);
        EXPECT_LE(uint64_t{item.rows} * item.heads, std::max(64u, heads / kv_heads));
        for (uint32_t row = 0; row < item.rows; ++row) {
          for (uint32_t head = item.head; head < item.head + item.heads; ++head) {
            EXPECT_EQ(head / (heads / kv_heads), item.kv_head);
            ++seen[{item.sequence->first_row + item.first + row, head}];
          }
        }
      }
      EXPECT_EQ(seen.size(), first_row * heads);
      for (const auto& [key, count] : seen) EXPECT_EQ(count, 1u);
    }
  }
}

TEST(AttentionItemsTest, OneRowIsSharedByThreads) {
  Batch batch;
  batch.tokens.resize(1);
  batch.sequences.push_back({.first_row = 0, .rows = 1, .position = 100, .tables = {}});
  EXPECT_EQ(CutAttention(batch, 4, 1, 1).size(), 1u);
  EXPECT_EQ(CutAttention(batch, 4, 1, 2).size(), 2u);
  EXPECT_EQ(CutAttention(batch, 4, 1, 4).size(), 4u);
}

}  // namespace
}  // namespace baton
