#include "engine/sampling/sampling_params.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct Range {
  absl::string_view field;
  double value;
  double least;
  double most;
  bool least_included = true;
};

absl::Status Check(const Range& range) {
  const bool above = range.least_included ? range.value >= range.least : range.value > range.least;
  if (above && range.value <= range.most) return absl::OkStatus();  // NaN fails both
  return absl::InvalidArgumentError(absl::StrCat(range.field, " is ", range.value, "; it must be in ",
                                                 range.least_included ? "[" : "(", range.least, ", ",
                                                 range.most, "]"));
}

absl::Status CheckId(absl::string_view field, TokenId id, uint32_t vocab_size) {
  if (id < vocab_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " names token ", id, "; ids must be below the vocabulary size ", vocab_size));
}

}  // namespace

absl::Status Validate(const SamplingParams& params, uint32_t vocab_size) {
  const Range ranges[] = {
      {"sampling.temperature", params.temperature, 0, 100},
      {"sampling.top_p", params.top_p, 0, 1, false},
      {"sampling.min_p", params.min_p, 0, 1},
      {"sampling.presence_penalty", params.presence_penalty, -2, 2},
      {"sampling.frequency_penalty", params.frequency_penalty, -2, 2},
      {"sampling.repetition_penalty", params.repetition_penalty, 0, 10, false},
  };
  for (const Range& range : ranges) RETURN_IF_ERROR(Check(range));
  absl::flat_hash_set<TokenId> biased;
  for (const auto& [id, bias] : params.logit_bias) {
    RETURN_IF_ERROR(CheckId("sampling.logit_bias", id, vocab_size));
    RETURN_IF_ERROR(Check({absl::StrCat("sampling.logit_bias of token ", id), bias, -100, 100}));
    if (!biased.insert(id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("sampling.logit_bias names token ", id, " twice; once is the limit"));
    }
  }
  for (TokenId id : params.stop_ids) RETURN_IF_ERROR(CheckId("stopping.stop_token_ids", id, vocab_size));
  return absl::OkStatus();
}

}  // namespace baton
