#include "router/call_answer.h"

#include <algorithm>
#include <utility>

#include "engine/tokenizer/detokenizer.h"

namespace baton {

CallAnswer::CallAnswer(const CallSpec* spec, const Tokenizer* tokenizer)
    : spec_(spec),
      tokenizer_(tokenizer),
      text_(tokenizer, spec->skip_special_tokens, spec->stop_strings, spec->include_stop) {}

CallAnswer::Step CallAnswer::Take(const v1::LegToken& token, const PromptLogprobs& prompt_logprobs,
                                  uint32_t cached_tokens) {
  const uint32_t index = static_cast<uint32_t>(tokens_.size());
  tokens_.push_back(token.id());
  Step step;
  v1::GenerateStreamResponse& response = step.response;
  response.set_index(index);
  response.set_count(1);
  if (spec_->return_tokens) response.add_tokens(token.id());
  if (spec_->logprobs) *response.add_logprobs() = DescribeLogprobs(token);
  if (index == 0) {
    response.set_seed(spec_->sampling.seed());
    v1::PromptInfo& prompt = *response.mutable_prompt();
    prompt.set_prompt_tokens(static_cast<uint32_t>(spec_->prompt.size()));
    prompt.set_cached_tokens(cached_tokens);
    for (const v1::LegToken& entry : prompt_logprobs) {
      if (entry.id() < tokenizer_->vocab_size()) *prompt.add_logprobs() = DescribeLogprobs(entry);
    }
  }
  std::string text;
  step.finish = FinishAfter(token.id(), text);
  response.set_text(std::move(text));
  return step;
}

std::optional<v1::Finish> CallAnswer::FinishAfter(TokenId token, std::string& text) {
  const uint32_t count = static_cast<uint32_t>(tokens_.size());
  const bool may_stop = count >= spec_->min_tokens;
  v1::Finish finish;
  if (may_stop && std::find(spec_->stop_ids.begin(), spec_->stop_ids.end(), token) != spec_->stop_ids.end()) {
    if (spec_->include_stop) text = text_.Push(token, /*may_stop=*/false).text;
    text += text_.Finish();
    finish.set_reason(v1::FINISH_REASON_STOP);
    finish.set_stop_token(token);
    return finish;
  }
  AnswerText::Piece piece = text_.Push(token, may_stop);
  text = std::move(piece.text);
  if (piece.stop != nullptr) {
    finish.set_reason(v1::FINISH_REASON_STOP);
    finish.set_stop_string(*piece.stop);
    return finish;
  }
  if (count < spec_->max_tokens) return std::nullopt;
  text += text_.Finish();
  finish.set_reason(v1::FINISH_REASON_LENGTH);
  return finish;
}

v1::PositionLogprobs CallAnswer::DescribeLogprobs(const v1::LegToken& token) const {
  const auto describe = [&](uint32_t id, float logprob) {
    v1::TokenLogprob entry;
    entry.set_token(id);
    entry.set_logprob(logprob);
    Detokenizer text(tokenizer_, /*skip_special_tokens=*/false);
    entry.set_text(text.Push(id) + text.Finish());
    return entry;
  };
  v1::PositionLogprobs position;
  *position.mutable_token() = describe(token.id(), token.logprob());
  for (const v1::LegLogprob& top : token.top()) {
    if (top.token() < tokenizer_->vocab_size()) *position.add_top() = describe(top.token(), top.logprob());
  }
  return position;
}

v1::Usage CallAnswer::usage(uint32_t cached_tokens) const {
  v1::Usage usage;
  usage.set_prompt_tokens(static_cast<uint32_t>(spec_->prompt.size()));
  usage.set_cached_tokens(cached_tokens);
  usage.set_completion_tokens(static_cast<uint32_t>(tokens_.size()));
  return usage;
}

}  // namespace baton
