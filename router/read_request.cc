#include "router/read_request.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "common/error_details.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// One number of Sampling with its range; both ends belong to it unless `above_low`.
struct SamplingRange {
  const char* field;
  bool (v1::Sampling::*has)() const;
  double (v1::Sampling::*get)() const;
  double low;
  double high;
  bool above_low = false;
};

constexpr SamplingRange kSamplingRanges[] = {
    {"sampling.temperature", &v1::Sampling::has_temperature, &v1::Sampling::temperature, 0, 100},
    {"sampling.top_p", &v1::Sampling::has_top_p, &v1::Sampling::top_p, 0, 1, true},
    {"sampling.min_p", &v1::Sampling::has_min_p, &v1::Sampling::min_p, 0, 1},
    {"sampling.presence_penalty", &v1::Sampling::has_presence_penalty, &v1::Sampling::presence_penalty, -2,
     2},
    {"sampling.frequency_penalty", &v1::Sampling::has_frequency_penalty, &v1::Sampling::frequency_penalty, -2,
     2},
    {"sampling.repetition_penalty", &v1::Sampling::has_repetition_penalty, &v1::Sampling::repetition_penalty,
     0, 10, true},
};

absl::Status OverLimit(std::string_view field, uint64_t count, std::string_view of, uint64_t limit) {
  return InvalidField(field, StrCat(count, " ", of, ", at most ", limit, " are allowed"));
}

// Negated, so that NaN fails.
bool Within(double value, const SamplingRange& range) {
  return (range.above_low ? value > range.low : value >= range.low) && value <= range.high;
}

absl::Status CheckSampling(const v1::Sampling& sampling, uint32_t vocab_size, const RequestLimits& limits) {
  for (const SamplingRange& range : kSamplingRanges) {
    if (!(sampling.*range.has)() || Within((sampling.*range.get)(), range)) continue;
    return InvalidField(range.field, StrCat((sampling.*range.get)(), " is not in ",
                                            range.above_low ? "(" : "[", range.low, ", ", range.high, "]"));
  }
  if (static_cast<uint32_t>(sampling.logit_bias_size()) > limits.max_logit_bias) {
    return OverLimit("sampling.logit_bias", sampling.logit_bias_size(), "entries", limits.max_logit_bias);
  }
  for (const auto& [id, bias] : sampling.logit_bias()) {
    const std::string field = StrCat("sampling.logit_bias[", id, "]");
    if (id >= vocab_size)
      return InvalidField(field, StrCat("is outside the vocabulary of ", vocab_size, " tokens"));
    if (!(bias >= -100 && bias <= 100)) return InvalidField(field, StrCat(bias, " is not in [-100, 100]"));
  }
  return absl::OkStatus();
}

absl::Status CheckRequestId(const std::string& id, const RequestLimits& limits) {
  if (id.empty()) return InvalidField("request_id", "is empty");
  if (id.size() > limits.max_request_id_bytes) {
    return OverLimit("request_id", id.size(), "bytes", limits.max_request_id_bytes);
  }
  // It travels in header metadata.
  const bool printable = std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c <= '~'; });
  return printable ? absl::OkStatus()
                   : InvalidField("request_id", "holds other characters than printable ASCII");
}

absl::Status CheckPriority(int32_t priority, const RequestLimits& limits) {
  if (priority >= -limits.max_priority && priority <= limits.max_priority) return absl::OkStatus();
  return InvalidField("priority",
                      StrCat(priority, " is not in [", -limits.max_priority, ", ", limits.max_priority, "]"));
}

absl::Status ReadStopping(const v1::Stopping& stopping, uint32_t vocab_size, const Tokenizer& tokenizer,
                          const RequestLimits& limits, CallSpec& spec) {
  if (static_cast<uint32_t>(stopping.stop_size()) > limits.max_stop_strings) {
    return OverLimit("stopping.stop", stopping.stop_size(), "strings", limits.max_stop_strings);
  }
  for (int i = 0; i < stopping.stop_size(); ++i) {
    const std::string& stop = stopping.stop(i);
    if (stop.empty()) return InvalidField(StrCat("stopping.stop[", i, "]"), "is empty");
    if (stop.size() > limits.max_stop_bytes) {
      return OverLimit(StrCat("stopping.stop[", i, "]"), stop.size(), "bytes", limits.max_stop_bytes);
    }
    spec.stop_strings.push_back(stop);
  }
  if (static_cast<uint32_t>(stopping.stop_token_ids_size()) > limits.max_stop_tokens) {
    return OverLimit("stopping.stop_token_ids", stopping.stop_token_ids_size(), "ids",
                     limits.max_stop_tokens);
  }
  RETURN_IF_ERROR(CheckTokenIds("stopping.stop_token_ids", stopping.stop_token_ids(), vocab_size));
  spec.stop_ids.assign(stopping.stop_token_ids().begin(), stopping.stop_token_ids().end());
  if (!stopping.ignore_eos()) {
    const absl::Span<const TokenId> ends = tokenizer.end_of_generation();
    spec.stop_ids.insert(spec.stop_ids.end(), ends.begin(), ends.end());
  }
  spec.include_stop = stopping.include_stop();
  if (stopping.has_time_limit_ms()) {
    const double ms = stopping.time_limit_ms();
    if (!(ms > 0) || std::isinf(ms))
      return InvalidField("stopping.time_limit_ms", StrCat(ms, " is not a time above 0"));
    spec.time_limit = absl::Milliseconds(ms);
  }
  return absl::OkStatus();
}

// The field that the prompt came in.
const char* InputField(const v1::GenerateRequest& request) {
  return request.has_chat() ? "chat" : request.has_tokens() ? "tokens.ids" : "prompt";
}

absl::Status ReadLengths(const v1::GenerateRequest& request, uint32_t context_tokens,
                         const RequestLimits& limits, CallSpec& spec) {
  const v1::Stopping& stopping = request.stopping();
  const uint64_t prompt = spec.prompt.size();
  if (prompt >= context_tokens) {
    return InvalidField(InputField(request),
                        StrCat("a prompt of ", prompt, " tokens leaves no room in the context of ",
                               context_tokens, " tokens"));
  }
  const uint32_t room = context_tokens - static_cast<uint32_t>(prompt);
  spec.max_tokens =
      stopping.has_max_tokens() ? stopping.max_tokens() : std::min(limits.default_max_tokens, room);
  if (spec.max_tokens < 1) return InvalidField("stopping.max_tokens", "0 is below 1");
  if (spec.max_tokens > room) {
    return InvalidField("stopping.max_tokens",
                        StrCat(spec.max_tokens, " with a prompt of ", prompt,
                               " tokens is over the context of ", context_tokens, " tokens"));
  }
  spec.min_tokens = stopping.min_tokens();
  if (spec.min_tokens > spec.max_tokens) {
    return InvalidField("stopping.min_tokens",
                        StrCat(spec.min_tokens, " is above max_tokens ", spec.max_tokens));
  }
  return absl::OkStatus();
}

absl::Status ReadResponse(const v1::ResponseOptions& response, const RequestLimits& limits, CallSpec& spec) {
  if (response.logprobs() > limits.max_logprobs) {
    return OverLimit("response.logprobs", response.logprobs(), "tokens", limits.max_logprobs);
  }
  if (response.prompt_logprobs() > limits.max_logprobs) {
    return OverLimit("response.prompt_logprobs", response.prompt_logprobs(), "tokens", limits.max_logprobs);
  }
  if (response.has_logprobs()) spec.logprobs = response.logprobs();
  if (response.has_prompt_logprobs()) spec.prompt_logprobs = response.prompt_logprobs();
  spec.return_tokens = response.return_tokens();
  spec.skip_special_tokens = !response.has_skip_special_tokens() || response.skip_special_tokens();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> ReadInput(const v1::GenerateRequest& request, const ServedModel& model,
                                               const RequestLimits& limits, absl::Time now) {
  switch (request.input_case()) {
    case v1::GenerateRequest::kPrompt:
      if (request.prompt().empty()) return InvalidField("prompt", "is empty");
      RETURN_IF_ERROR(CheckPromptBytes(request.prompt(), limits));
      return model.tokenizer().Encode({{request.prompt(), request.parse_control_tokens()}},
                                      /*add_special=*/true);
    case v1::GenerateRequest::kTokens:
      if (request.tokens().ids().empty()) return InvalidField("tokens.ids", "is empty");
      RETURN_IF_ERROR(CheckTokenIds("tokens.ids", request.tokens().ids(), model.tokenizer().vocab_size()));
      return std::vector<TokenId>(request.tokens().ids().begin(), request.tokens().ids().end());
    case v1::GenerateRequest::kChat: {
      RETURN_IF_ERROR(CheckPromptBytes(request.chat(), limits));
      ASSIGN_OR_RETURN(const std::vector<TextRun> runs,
                       RenderChat(request.chat(), request.parse_control_tokens(), model, now));
      return model.tokenizer().Encode(runs, /*add_special=*/false);
    }
    default:
      return InvalidField("prompt", "is absent: one of prompt, tokens and chat must be given");
  }
}

}  // namespace

absl::Status CheckTokenIds(std::string_view field, const google::protobuf::RepeatedField<uint32_t>& ids,
                           uint32_t vocab) {
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocab) continue;
    return InvalidField(StrCat(field, "[", i, "]"),
                        StrCat(ids[i], " is outside the vocabulary of ", vocab, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status CheckPromptBytes(std::string_view prompt, const RequestLimits& limits) {
  return prompt.size() <= limits.max_prompt_bytes
             ? absl::OkStatus()
             : OverLimit("prompt", prompt.size(), "bytes", limits.max_prompt_bytes);
}

absl::Status CheckPromptBytes(const v1::Chat& chat, const RequestLimits& limits) {
  uint64_t bytes = 0;
  for (const v1::ChatMessage& message : chat.messages()) {
    bytes += message.role().size() + message.content().size();
  }
  return bytes <= limits.max_prompt_bytes
             ? absl::OkStatus()
             : OverLimit("chat.messages", bytes, "bytes", limits.max_prompt_bytes);
}

absl::Status CheckModelName(bool has_name, const std::string& name, const ServedModel& model) {
  if (!has_name || name == model.name()) return absl::OkStatus();
  return absl::NotFoundError(
      StrCat("model: \"", name.substr(0, 200), "\" is not served; \"", model.name(), "\" is"));
}

absl::StatusOr<std::vector<TextRun>> RenderChat(const v1::Chat& chat, bool allow_control,
                                                const ServedModel& model, absl::Time now) {
  if (model.chat_template() == nullptr) {
    return InvalidField("chat",
                        StrCat("the model \"", model.name(), "\" carries no chat template; use prompt"));
  }
  if (chat.messages().empty()) return InvalidField("chat.messages", "is empty");
  std::vector<ChatMessage> messages;
  for (int i = 0; i < chat.messages_size(); ++i) {
    const v1::ChatMessage& message = chat.messages(i);
    if (message.role().empty()) return InvalidField(StrCat("chat.messages[", i, "].role"), "is empty");
    messages.push_back({message.role(), message.content()});
  }
  absl::StatusOr<std::vector<TextRun>> runs =
      model.chat_template()->Render(messages, model.chat_context(now));
  if (!runs.ok()) return InvalidField("chat", std::string(runs.status().message()));
  if (allow_control) {
    for (TextRun& run : *runs) run.allow_control = true;
  }
  return runs;
}

absl::StatusOr<CallSpec> ReadRequest(const v1::GenerateRequest& request, const ServedModel& model,
                                     uint32_t context_tokens, const RequestLimits& limits, uint64_t seed,
                                     absl::Time now) {
  CallSpec spec;
  const Tokenizer& tokenizer = model.tokenizer();
  spec.request_id = request.request_id();
  RETURN_IF_ERROR(CheckRequestId(spec.request_id, limits));
  RETURN_IF_ERROR(CheckModelName(request.has_model(), request.model(), model));
  RETURN_IF_ERROR(CheckPriority(request.priority(), limits));
  RETURN_IF_ERROR(CheckSampling(request.sampling(), tokenizer.vocab_size(), limits));
  RETURN_IF_ERROR(ReadStopping(request.stopping(), tokenizer.vocab_size(), tokenizer, limits, spec));
  RETURN_IF_ERROR(ReadResponse(request.response(), limits, spec));
  ASSIGN_OR_RETURN(spec.prompt, ReadInput(request, model, limits, now));
  RETURN_IF_ERROR(ReadLengths(request, context_tokens, limits, spec));
  spec.priority = request.priority();
  spec.sampling = request.sampling();
  if (!spec.sampling.has_seed()) spec.sampling.set_seed(seed);
  return spec;
}

}  // namespace baton
