#ifndef BATON_ROUTER_ANSWER_TEXT_H_
#define BATON_ROUTER_ANSWER_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton {

// The text of one answer: detokenizes, holds back what may become a stop string, and finds stop strings
// wherever they begin, across tokens and across the handoff. Owned by one call, used by one thread at a time.
class AnswerText {
 public:
  // `tokenizer` outlives this.
  AnswerText(const Tokenizer* tokenizer, bool skip_special_tokens, std::vector<std::string> stop_strings,
             bool include_stop);

  struct Piece {
    std::string text;                   // released now
    const std::string* stop = nullptr;  // the stop string that this token completed, if any
  };

  // Adds a token. Stop strings count only when `may_stop`; once one was found, nothing may be pushed.
  Piece Push(TokenId token, bool may_stop);
  // The answer ended otherwise: everything that was held back.
  std::string Finish();

 private:
  // Bytes at the end of held_ that may be the beginning of a stop string.
  size_t PossibleStop() const;

  Detokenizer detokenizer_;
  const std::vector<std::string> stop_strings_;
  const bool include_stop_;
  std::string held_;
};

}  // namespace baton

#endif  // BATON_ROUTER_ANSWER_TEXT_H_
