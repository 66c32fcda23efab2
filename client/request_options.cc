#include "client/request_options.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr uint32_t kMost = 0xffffffff;

template <typename T>
absl::Status ParseWhole(const char* flag, const std::string& text, T* value) {
  if (absl::SimpleAtoi(text, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("--", flag, ": ", text, " is no whole number from 0 to ",
                                           static_cast<uint64_t>(static_cast<T>(-1))));
}

absl::Status ApplySampling(const RequestOptions& options, v1::Sampling& sampling) {
  if (options.temperature != 1) sampling.set_temperature(options.temperature);
  if (options.top_p != 1) sampling.set_top_p(options.top_p);
  if (options.top_k != 0) sampling.set_top_k(options.top_k);
  if (options.min_p != 0) sampling.set_min_p(options.min_p);
  if (options.presence_penalty != 0) sampling.set_presence_penalty(options.presence_penalty);
  if (options.frequency_penalty != 0) sampling.set_frequency_penalty(options.frequency_penalty);
  if (options.repetition_penalty != 1) sampling.set_repetition_penalty(options.repetition_penalty);
  if (!options.seed.empty()) {
    uint64_t seed = 0;
    RETURN_IF_ERROR(ParseWhole("seed", options.seed, &seed));
    sampling.set_seed(seed);
  }
  for (const std::string& text : options.logit_bias) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    uint32_t token = 0;
    double bias = 0;
    RETURN_IF_ERROR(ParseWhole("logit-bias", parts.first, &token));
    if (!absl::SimpleAtod(parts.second, &bias) || !std::isfinite(bias)) {
      return absl::InvalidArgumentError(StrCat("--logit-bias: ", text, " is not ID=BIAS, such as 42=-1.5"));
    }
    (*sampling.mutable_logit_bias())[token] = bias;
  }
  return absl::OkStatus();
}

absl::Status ApplyStopping(const RequestOptions& options, v1::Stopping& stopping) {
  if (options.max_tokens != 0) stopping.set_max_tokens(options.max_tokens);
  if (options.min_tokens != 0) stopping.set_min_tokens(options.min_tokens);
  for (const std::string& stop : options.stop) stopping.add_stop(stop);
  for (const std::string& text : options.stop_token_ids) {
    uint32_t token = 0;
    RETURN_IF_ERROR(ParseWhole("stop-token-ids", text, &token));
    stopping.add_stop_token_ids(token);
  }
  if (options.ignore_eos) stopping.set_ignore_eos(true);
  if (options.include_stop) stopping.set_include_stop(true);
  if (options.time_limit > absl::ZeroDuration()) {
    stopping.set_time_limit_ms(absl::ToDoubleMilliseconds(options.time_limit));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Option> Describe(RequestOptions* o) {
  return {
      Option::Text("model", &o->model, "name", "The model, where the server has several."),
      Option::Count("max-tokens", &o->max_tokens, {0, kMost}, "tokens",
                    "The answer's length at most; 0: 256 or the room left in the context."),
      Option::Count("min-tokens", &o->min_tokens, {0, kMost}, "tokens",
                    "The answer does not end of itself before."),
      Option::Real("temperature", &o->temperature, {0, 100}, "", "0 takes the most probable token."),
      Option::Real("top-p", &o->top_p, {0, 1}, "",
                   "Draw among the most probable tokens that reach this sum."),
      Option::Count("top-k", &o->top_k, {0, kMost}, "tokens", "Draw among so many; 0: among all."),
      Option::Real("min-p", &o->min_p, {0, 1}, "",
                   "Leave out tokens below this part of the best one's probability."),
      Option::Real("presence-penalty", &o->presence_penalty, {-2, 2}, "",
                   "Against tokens that the answer has."),
      Option::Real("frequency-penalty", &o->frequency_penalty, {-2, 2}, "", "The same, by how often."),
      Option::Real("repetition-penalty", &o->repetition_penalty, {0, 10}, "",
                   "Over prompt and answer; 1: none."),
      Option::Text("seed", &o->seed, "number", "The same seed draws the same answer; random when absent."),
      Option::List("logit-bias", &o->logit_bias, "ID=BIAS,...", "Added to the logits of these tokens."),
      Option::Texts("stop", &o->stop, "text", "Ends the answer; may be given several times."),
      Option::List("stop-token-ids", &o->stop_token_ids, "ID,...", "End the answer."),
      Option::Switch("ignore-eos", &o->ignore_eos, "Go on past the model's own end, to --max-tokens."),
      Option::Switch("include-stop", &o->include_stop, "Print what stopped the answer too."),
      Option::Time("time-limit", &o->time_limit, {absl::ZeroDuration(), absl::Hours(24)},
                   "The answer ends where it stands after this long; 0: no limit."),
      Option::Switch("keep-special-tokens", &o->keep_special_tokens,
                     "Print control tokens such as <|im_end|>."),
      Option::Switch("parse-control-tokens", &o->parse_control_tokens,
                     "Let the prompt's text spell control tokens."),
  };
}

absl::Status ApplyTo(const RequestOptions& options, v1::GenerateRequest& request) {
  if (!options.model.empty()) request.set_model(options.model);
  RETURN_IF_ERROR(ApplySampling(options, *request.mutable_sampling()));
  RETURN_IF_ERROR(ApplyStopping(options, *request.mutable_stopping()));
  if (options.keep_special_tokens) request.mutable_response()->set_skip_special_tokens(false);
  if (options.parse_control_tokens) request.set_parse_control_tokens(true);
  return absl::OkStatus();
}

}  // namespace baton
