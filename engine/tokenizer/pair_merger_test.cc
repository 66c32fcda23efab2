#include "engine/tokenizer/pair_merger.h"

#include <random>
#include <string>
#include <unordered_map>

#include "gtest/gtest.h"

namespace baton {
namespace {

using Ranks = std::unordered_map<std::string, uint32_t>;

std::vector<std::string> Merged(const std::string& text, const Ranks& ranks) {
  std::vector<Piece> pieces;
  for (uint32_t i = 0; i < text.size(); ++i) pieces.push_back({i, 1, kNoToken});
  PairMerger().Merge(pieces, [&](const Piece& left, const Piece& right) -> std::optional<PairMerge> {
    EXPECT_EQ(left.begin + left.length, right.begin);
    const auto found = ranks.find(text.substr(left.begin, left.length + right.length));
    if (found == ranks.end()) return std::nullopt;
    return PairMerge{found->second, found->second};
  });
  std::vector<std::string> out;
  for (const Piece& piece : pieces) out.push_back(text.substr(piece.begin, piece.length));
  return out;
}

// The definition: look at all neighbours, merge the leftmost of the lowest rank, begin again.
std::vector<std::string> MergedSlowly(const std::string& text, const Ranks& ranks) {
  std::vector<std::string> pieces;
  for (char c : text) pieces.emplace_back(1, c);
  while (true) {
    size_t best = pieces.size();
    uint32_t best_rank = UINT32_MAX;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto found = ranks.find(pieces[i] + pieces[i + 1]);
      if (found == ranks.end() || found->second >= best_rank) continue;
      best = i;
      best_rank = found->second;
    }
    if (best == pieces.size()) return pieces;
    pieces[best] += pieces[best + 1];
    pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(PairMergerTest, TakesTheLowestRankFirstAndTheLeftmostOfEquals) {
  EXPECT_EQ(Merged("abc", {{"ab", 1}, {"bc", 0}}), (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(Merged("aaa", {{"aa", 0}}), (std::vector<std::string>{"aa", "a"}));
  EXPECT_EQ(Merged("abab", {{"ab", 0}, {"abab", 1}}), (std::vector<std::string>{"abab"}));
}

TEST(PairMergerTest, HandlesNothingAndOne) {
  EXPECT_TRUE(Merged("", {{"aa", 0}}).empty());
  EXPECT_EQ(Merged("a", {{"aa", 0}}), std::vector<std::string>{"a"});
}

TEST(PairMergerTest, AgreesWithTheDefinitionOnRandomTextsAndRanks) {
  std::mt19937 random(7);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  for (int round = 0; round < 2000; ++round) {
    Ranks ranks;
    for (uint32_t i = draw(30); i > 0; --i) {
      std::string text;
      for (uint32_t length = 2 + draw(4); length > 0; --length) text += static_cast<char>('a' + draw(3));
      ranks.emplace(text, draw(10));
    }
    std::string text;
    for (uint32_t length = draw(40); length > 0; --length) text += static_cast<char>('a' + draw(3));
    ASSERT_EQ(Merged(text, ranks), MergedSlowly(text, ranks)) << text;
  }
}

}  // namespace
}  // namespace baton
