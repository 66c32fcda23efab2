#ifndef BATON_ENGINE_TOKENIZER_PAIR_MERGER_H_
#define BATON_ENGINE_TOKENIZER_PAIR_MERGER_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/token.h"

namespace baton {

// A stretch of a text on its way to become a token. `length` is 0 once the piece has gone into its left
// neighbour.
struct Piece {
  uint32_t begin = 0;   // bytes into the text
  uint32_t length = 0;  // bytes
  TokenId id = 0;       // the token that it spells, or kNoToken
};
inline constexpr TokenId kNoToken = UINT32_MAX;

// What two neighbours become, and how soon: the lowest rank of a whole text merges first.
struct PairMerge {
  uint32_t rank = 0;
  TokenId id = 0;
};

// Merges neighbours in a row of pieces. Keeps its buffers from one row to the next; used by one thread.
class PairMerger {
 public:
  // Merges as long as `lookup(const Piece& left, const Piece& right)`, an optional<PairMerge>, gives any:
  // lowest rank first, the leftmost among equals. O(n log n) lookups and steps. Leaves the surviving pieces
  // in order.
  template <typename Lookup>
  void Merge(std::vector<Piece>& pieces, const Lookup& lookup);

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;

  struct Candidate {
    uint64_t order = 0;  // rank << 32 | left
    uint32_t right = 0;
    uint32_t length =
        0;  // of both when it was found: pieces only grow, so a different sum means that it is stale
    TokenId id = 0;

    bool operator<(const Candidate& other) const {
      return order > other.order;
    }  // the heap's top is the next one
  };
  struct Links {
    uint32_t previous = 0;
    uint32_t next = 0;
  };

  // Adds what `left` and `right` may become to the end of the heap; false when that is nothing.
  template <typename Lookup>
  bool Find(const std::vector<Piece>& pieces, uint32_t left, uint32_t right, const Lookup& lookup);

  std::vector<Candidate> heap_;
  std::vector<Links> links_;  // [pieces] the neighbours that have not merged, or kEnd
};

template <typename Lookup>
void PairMerger::Merge(std::vector<Piece>& pieces, const Lookup& lookup) {
  const uint32_t count = static_cast<uint32_t>(pieces.size());
  heap_.clear();
  links_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    links_[i] = {i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1};
    Find(pieces, links_[i].previous, i, lookup);
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    const uint32_t left = static_cast<uint32_t>(best.order);
    const uint32_t right = best.right;
    if (pieces[left].length == 0 || pieces[right].length == 0) continue;
    if (pieces[left].length + pieces[right].length != best.length) continue;
    pieces[left].length = best.length;
    pieces[left].id = best.id;
    pieces[right].length = 0;
    const uint32_t next = links_[right].next;
    links_[left].next = next;
    if (next != kEnd) links_[next].previous = left;
    if (Find(pieces, links_[left].previous, left, lookup)) std::push_heap(heap_.begin(), heap_.end());
    if (Find(pieces, left, next, lookup)) std::push_heap(heap_.begin(), heap_.end());
  }
  std::erase_if(pieces, [](const Piece& piece) { return piece.length == 0; });
}

template <typename Lookup>
bool PairMerger::Find(const std::vector<Piece>& pieces, uint32_t left, uint32_t right, const Lookup& lookup) {
  if (left == kEnd || right == kEnd) return false;
  const std::optional<PairMerge> merge = lookup(pieces[left], pieces[right]);
  if (!merge.has_value()) return false;
  heap_.push_back(
      {uint64_t{merge->rank} << 32 | left, right, pieces[left].length + pieces[right].length, merge->id});
  return true;
}

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_PAIR_MERGER_H_
