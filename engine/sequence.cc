#include "engine/sequence.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace baton {

Sequence::Sequence(SequenceSpec spec, uint32_t vocab_size)
    : spec_(std::move(spec)),
      tokens_(spec_.prompt),
      sampler_(spec_.sampling, vocab_size, spec_.prompt, spec_.output) {
  BATON_CHECK(!spec_.prompt.empty());
  tokens_.insert(tokens_.end(), spec_.output.begin(), spec_.output.end());
}

uint32_t Sequence::TokensAfter(uint32_t more) const {
  return static_cast<uint32_t>(
      std::min(uint64_t{known_tokens()} + more, uint64_t{prompt_tokens()} + spec_.max_tokens));
}

void Sequence::DropKv() {
  kv_ = SequenceKv();
  computed_ = 0;
}

void Sequence::Append(TokenId token) {
  tokens_.push_back(token);
  sampler_.Observe(token);
}

PlannedSequence Sequence::Planned() const {
  if (!prompt_computed()) return {.prompt_left = prompt_tokens() - computed_};
  return {.decode_rows = static_cast<uint32_t>(tokens_.size()) - computed_};
}

SequenceStep Sequence::MakeStep(uint32_t rows, bool may_sample) {
  const uint32_t known = known_tokens();
  const bool prefills = !prompt_computed();
  BATON_CHECK(rows > 0 && computed_ + rows <= (prefills ? prompt_tokens() : known));
  SequenceStep step;
  step.phase = prefills ? Phase::kPrefill : Phase::kDecode;
  step.tokens = absl::MakeConstSpan(tokens_).subspan(computed_, rows);
  step.position = computed_;
  step.kv = &kv_;
  if (may_sample && computed_ + rows == known) {
    step.sampler = &sampler_;
    step.logprobs = spec_.logprobs;
  }
  if (prefills && output_tokens() == 0) {  // with token 0 the prompt's logprobs were reported
    step.prompt_logprobs = spec_.prompt_logprobs;
    if (computed_ + rows < prompt_tokens()) step.next_token = tokens_[computed_ + rows];
  }
  return step;
}

void Sequence::OnStepDone(uint32_t rows, const std::optional<SampledToken>& sampled) {
  computed_ += rows;
  if (sampled) Append(sampled->id);
}

Sequence::Finish Sequence::finish() const {
  const uint32_t output = output_tokens();
  if (output == 0) return Finish::kNone;
  if (output >= spec_.sampling.min_tokens &&
      std::find(spec_.stop_ids.begin(), spec_.stop_ids.end(), tokens_.back()) != spec_.stop_ids.end()) {
    return Finish::kStop;
  }
  return output >= spec_.max_tokens ? Finish::kLength : Finish::kNone;
}

}  // namespace baton
