#ifndef BATON_ROUTER_CALL_ANSWER_H_
#define BATON_ROUTER_CALL_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/v1/inference.pb.h"
#include "baton/v1/leg.pb.h"
#include "engine/tokenizer/tokenizer.h"
#include "router/answer_text.h"
#include "router/call_spec.h"

namespace baton {

// The answer to one call as its tokens are accepted, one by one: its text, how it ends, what the client is
// told of each token. Decides by the tokens alone, so an answer ends the same way wherever they come from.
// Owned by a GenerateCall.
class CallAnswer {
 public:
  using PromptLogprobs = google::protobuf::RepeatedPtrField<v1::LegToken>;
  struct Step {
    v1::GenerateStreamResponse response;
    std::optional<v1::Finish> finish;  // with the last token
  };

  // Both outlive it.
  CallAnswer(const CallSpec* spec, const Tokenizer* tokenizer);

  // Takes the next token, which is in the vocabulary. `prompt_logprobs` and `cached_tokens` go out with token
  // 0.
  Step Take(const v1::LegToken& token, const PromptLogprobs& prompt_logprobs, uint32_t cached_tokens);
  // What is held back of the text, for an answer that ends between two tokens.
  std::string TakeRest() { return text_.Finish(); }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  v1::Usage usage(uint32_t cached_tokens) const;

 private:
  // How the answer ends with its latest token, if it does; sets what is released of its text.
  std::optional<v1::Finish> FinishAfter(TokenId token, std::string& text);
  v1::PositionLogprobs DescribeLogprobs(const v1::LegToken& token) const;

  const CallSpec* const spec_;
  const Tokenizer* const tokenizer_;
  std::vector<TokenId> tokens_;
  AnswerText text_;
};

}  // namespace baton

#endif  // BATON_ROUTER_CALL_ANSWER_H_
