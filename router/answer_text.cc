#include "router/answer_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace baton {

AnswerText::AnswerText(const Tokenizer* tokenizer, bool skip_special_tokens,
                       std::vector<std::string> stop_strings, bool include_stop)
    : detokenizer_(tokenizer, skip_special_tokens),
      stop_strings_(std::move(stop_strings)),
      include_stop_(include_stop) {}

AnswerText::Piece AnswerText::Push(TokenId token, bool may_stop) {
  held_ += detokenizer_.Push(token);
  Piece piece;
  if (may_stop) {
    size_t first = std::string::npos;
    for (const std::string& stop : stop_strings_) {
      const size_t at = held_.find(stop);
      // Of several that begin at the same place, the one that the client listed first.
      if (at < first) {
        first = at;
        piece.stop = &stop;
      }
    }
    if (piece.stop != nullptr) {
      piece.text = held_.substr(0, first + (include_stop_ ? piece.stop->size() : 0));
      held_.clear();
      return piece;
    }
  }
  const size_t release = held_.size() - (may_stop ? PossibleStop() : 0);
  piece.text = held_.substr(0, release);
  held_.erase(0, release);
  return piece;
}

std::string AnswerText::Finish() {
  held_ += detokenizer_.Finish();
  return std::exchange(held_, {});
}

size_t AnswerText::PossibleStop() const {
  const std::string_view held = held_;
  size_t longest = 0;
  for (const std::string& stop : stop_strings_) {
    for (size_t length = std::min(held.size(), stop.size() - 1); length > longest; --length) {
      if (held.substr(held.size() - length) == std::string_view(stop).substr(0, length)) longest = length;
    }
  }
  return longest;
}

}  // namespace baton
