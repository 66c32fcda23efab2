#include "engine/leg_messages.h"

#include <utility>

#include "common/error_details.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

absl::Status CheckIds(std::string_view field, const google::protobuf::RepeatedField<uint32_t>& ids,
                      uint32_t vocab) {
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocab) {
      return InvalidField(StrCat(field, "[", i, "]"),
                          StrCat(ids[i], " is outside the vocabulary of ", vocab, " tokens"));
    }
  }
  return absl::OkStatus();
}

// More than any router lets a client ask for; a reply has so many entries for each token.
constexpr uint32_t kMaxLogprobs = 128;

absl::Status CheckLogprobs(std::string_view field, uint32_t count) {
  if (count <= kMaxLogprobs) return absl::OkStatus();
  return InvalidField(field, StrCat(count, " tokens, at most ", kMaxLogprobs, " are allowed"));
}

SamplingParams ReadSampling(const v1::Sampling& sampling) {
  SamplingParams params;
  if (sampling.has_temperature()) params.temperature = sampling.temperature();
  if (sampling.has_top_p()) params.top_p = sampling.top_p();
  params.top_k = sampling.top_k();
  params.min_p = sampling.min_p();
  params.presence_penalty = sampling.presence_penalty();
  params.frequency_penalty = sampling.frequency_penalty();
  if (sampling.has_repetition_penalty()) params.repetition_penalty = sampling.repetition_penalty();
  params.seed = sampling.seed();
  for (const auto& [id, bias] : sampling.logit_bias())
    params.logit_bias.emplace_back(id, static_cast<float>(bias));
  return params;
}

}  // namespace

absl::StatusOr<SequenceSpec> ReadTokenRequest(const v1::TokenRequest& request, const EngineInfo& info) {
  if (request.prompt().empty()) return InvalidField("prompt", "is empty");
  if (request.max_tokens() < 1) return InvalidField("stopping.max_tokens", "0 is below 1");
  const uint64_t total = uint64_t{static_cast<uint32_t>(request.prompt_size())} + request.max_tokens();
  if (total > info.context_tokens) {
    return InvalidField(
        "stopping.max_tokens",
        StrCat("prompt of ", request.prompt_size(), " tokens + max_tokens ", request.max_tokens(), " = ",
               total, " is over the context of ", info.context_tokens, " tokens"));
  }
  if (static_cast<uint32_t>(request.output_size()) >= request.max_tokens()) {
    return InvalidField("output",
                        StrCat(request.output_size(), " tokens leave nothing to sample of max_tokens ",
                               request.max_tokens()));
  }
  RETURN_IF_ERROR(CheckIds("prompt", request.prompt(), info.vocab_size));
  RETURN_IF_ERROR(CheckIds("output", request.output(), info.vocab_size));
  RETURN_IF_ERROR(CheckIds("stopping.stop_token_ids", request.stop_token_ids(), info.vocab_size));
  RETURN_IF_ERROR(CheckLogprobs("response.logprobs", request.logprobs()));
  RETURN_IF_ERROR(CheckLogprobs("response.prompt_logprobs", request.prompt_logprobs()));
  SequenceSpec spec;
  spec.prompt.assign(request.prompt().begin(), request.prompt().end());
  spec.output.assign(request.output().begin(), request.output().end());
  spec.stop_ids.assign(request.stop_token_ids().begin(), request.stop_token_ids().end());
  spec.sampling = ReadSampling(request.sampling());
  spec.sampling.min_tokens = request.min_tokens();
  spec.sampling.stop_ids = spec.stop_ids;
  RETURN_IF_ERROR(Validate(spec.sampling, info.vocab_size));
  spec.max_tokens = request.max_tokens();
  if (request.has_logprobs()) spec.logprobs = request.logprobs();
  if (request.has_prompt_logprobs()) spec.prompt_logprobs = request.prompt_logprobs();
  return spec;
}

v1::LegToken WriteToken(const SampledToken& token, bool with_logprob) {
  v1::LegToken message;
  message.set_id(token.id);
  if (!with_logprob) return message;
  message.set_logprob(token.logprob);
  for (const TokenLogprob& top : token.top) {
    v1::LegLogprob* entry = message.add_top();
    entry->set_token(top.id);
    entry->set_logprob(top.logprob);
  }
  return message;
}

}  // namespace baton
