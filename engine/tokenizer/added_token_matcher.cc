#include "engine/tokenizer/added_token_matcher.h"

namespace baton {

AddedTokenMatcher::AddedTokenMatcher(const Vocabulary& vocabulary) : nodes_(1) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const bool is_control = vocabulary.is_control(id);
    if (!is_control && vocabulary.kind(id) != TokenKind::kUserDefined) continue;
    if (!vocabulary.text(id).empty()) Add(vocabulary.text(id), id, is_control);
  }
}

void AddedTokenMatcher::Add(std::string_view text, TokenId id, bool is_control) {
  uint32_t node = 0;
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    uint32_t& child = node == 0 ? root_children_[byte] : children_[uint64_t{node} << 8 | byte];
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    node = child;
  }
  nodes_[node] = {id, is_control};
}

uint32_t AddedTokenMatcher::Child(uint32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  const auto found = children_.find(uint64_t{node} << 8 | byte);
  return found == children_.end() ? 0 : found->second;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::LongestAt(std::string_view text, size_t offset,
                                                                     size_t control_end) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t end = offset; end < text.size();) {
    node = Child(node, static_cast<uint8_t>(text[end]));
    if (node == 0) break;
    ++end;
    const Node& reached = nodes_[node];
    if (!reached.token.has_value() || (reached.is_control && end > control_end)) continue;
    longest = Match{*reached.token, end - offset};
  }
  return longest;
}

}  // namespace baton
