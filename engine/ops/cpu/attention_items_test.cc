#include "engine/ops/cpu/attention_items.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace baton {
namespace {

constexpr uint32_t kRows[] = {1, 40, 3};

Batch MakeBatch(absl::Span<const uint32_t> rows, uint32_t position) {
  Batch batch;
  for (const uint32_t count : rows) {
    BatchSequence& sequence = batch.sequences.emplace_back();
    sequence.first_row = batch.rows();
    sequence.rows = count;
    sequence.position = position;
    batch.tokens.resize(batch.tokens.size() + count);
  }
  return batch;
}

// Every (row, head, key) that is seen is in one item, with its own KV head, whatever the threads.
TEST(AttentionItemsTest, EveryRowHeadAndKeyIsInOneItem) {
  for (const uint32_t position : {0u, 250u, 1000u}) {
    for (const uint32_t window : {0u, 300u}) {
      for (const auto& [heads, kv_heads] :
           {std::pair{9u, 3u}, std::pair{4u, 1u}, std::pair{2u, 2u}, std::pair{128u, 1u}}) {
        for (const uint32_t threads : {1u, 2u, 3u, 64u}) {
          const Batch batch = MakeBatch(kRows, position);
          const KvLayer kv{.kv_heads = kv_heads, .head_dim = 20, .window_tokens = window};
          const AttentionPlan plan = CutAttention(batch, kv, heads, threads);
          std::map<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>> seen;
          for (const AttentionItem& item : plan.items) {
            EXPECT_GT(item.rows * item.heads, 0u);
            EXPECT_LE(uint64_t{item.rows} * item.heads, std::max(96u, heads / kv_heads));
            for (uint32_t row = 0; row < item.rows; ++row) {
              for (uint32_t head = item.head; head < item.head + item.heads; ++head) {
                EXPECT_EQ(head / (heads / kv_heads), item.kv_head);
                seen[{item.sequence->first_row + item.first + row, head}].push_back({item.begin, item.end});
              }
            }
          }
          EXPECT_EQ(seen.size(), batch.rows() * heads);
          for (auto& [row_and_head, ranges] : seen) {
            std::sort(ranges.begin(), ranges.end());
            // Neighbours meet, the first begins before the window and the last ends after the row.
            for (size_t i = 1; i < ranges.size(); ++i) EXPECT_EQ(ranges[i].first, ranges[i - 1].second);
            uint32_t row = row_and_head.first;
            for (const uint32_t count : kRows) {
              if (row < count) break;
              row -= count;
            }
            const uint32_t at = position + row;
            EXPECT_LE(ranges.front().first, window == 0 || at < window ? 0 : at - window + 1);
            EXPECT_GT(ranges.back().second, at);
          }
        }
      }
    }
  }
}

TEST(AttentionItemsTest, OneRowIsSharedByThreads) {
  const KvLayer kv{.kv_heads = 1, .head_dim = 64};
  const Batch near = MakeBatch({1u}, 100);
  EXPECT_EQ(CutAttention(near, kv, 4, 1).items.size(), 1u);
  EXPECT_EQ(CutAttention(near, kv, 4, 2).items.size(), 2u);
  EXPECT_EQ(CutAttention(near, kv, 4, 4).items.size(), 4u);
  // A long context by its keys, each of which is read once for all query heads.
  const AttentionPlan far = CutAttention(MakeBatch({1u}, 1023), kv, 4, 2);
  ASSERT_EQ(far.items.size(), 4u);
  for (const AttentionItem& item : far.items) EXPECT_EQ(item.heads, 4u);
  ASSERT_EQ(far.merges.size(), 1u);
  EXPECT_EQ(far.merges[0].segments, 4u);
  EXPECT_EQ(far.partial_floats, 4u * 4 * (64 + 16));
}

}  // namespace
}  // namespace baton
