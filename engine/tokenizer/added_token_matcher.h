#ifndef BATON_ENGINE_TOKENIZER_ADDED_TOKEN_MATCHER_H_
#define BATON_ENGINE_TOKENIZER_ADDED_TOKEN_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/tokenizer/vocabulary.h"

namespace baton {

// Finds the tokens that are split off a text before it is tokenized: user-defined ones in any text, control
// tokens only where the caller allows them. A trie over their texts. Immutable; any number of threads may use
// it.
class AddedTokenMatcher {
 public:
  struct Match {
    TokenId id = 0;
    size_t bytes = 0;
  };

  explicit AddedTokenMatcher(const Vocabulary& vocabulary);

  // The longest added token that `text` has at `offset`; a control token only when it ends at or before
  // `control_end`.
  std::optional<Match> LongestAt(std::string_view text, size_t offset, size_t control_end) const;

 private:
  struct Node {
    std::optional<TokenId> token;
    bool is_control = false;
  };

  void Add(std::string_view text, TokenId id, bool is_control);
  // The child of `node` for `byte`, 0 when there is none.
  uint32_t Child(uint32_t node, uint8_t byte) const;

  std::vector<Node> nodes_;                       // nodes_[0] is the root
  std::array<uint32_t, 256> root_children_ = {};  // most bytes of a text begin no token: no hashing for them
  absl::flat_hash_map<uint64_t, uint32_t> children_;  // of other nodes, by node << 8 | byte
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_ADDED_TOKEN_MATCHER_H_
