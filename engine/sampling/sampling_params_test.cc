#include "engine/sampling/sampling_params.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kVocab = 100;

struct Field {
  std::string name;
  std::function<void(SamplingParams&, double)> set;
  double least, most;
  bool least_included;
};

const Field kFields[] = {
    {"sampling.temperature", [](SamplingParams& p, double x) { p.temperature = x; }, 0, 100, true},
    {"sampling.top_p", [](SamplingParams& p, double x) { p.top_p = x; }, 0, 1, false},
    {"sampling.min_p", [](SamplingParams& p, double x) { p.min_p = x; }, 0, 1, true},
    {"sampling.presence_penalty", [](SamplingParams& p, double x) { p.presence_penalty = x; }, -2, 2, true},
    {"sampling.frequency_penalty", [](SamplingParams& p, double x) { p.frequency_penalty = x; }, -2, 2, true},
    {"sampling.repetition_penalty", [](SamplingParams& p, double x) { p.repetition_penalty = x; }, 0, 10,
     false},
    {"sampling.logit_bias of token 5",
     [](SamplingParams& p, double x) { p.logit_bias = {{5, static_cast<float>(x)}}; }, -100, 100, true},
};

absl::Status Set(const Field& field, double value) {
  SamplingParams params;
  field.set(params, value);
  return Validate(params, kVocab);
}

TEST(Validate, DefaultsAreValid) { EXPECT_TRUE(Validate(SamplingParams(), kVocab).ok()); }

TEST(Validate, EveryRange) {
  for (const Field& field : kFields) {
    EXPECT_EQ(Set(field, field.least).ok(), field.least_included) << field.name;
    EXPECT_TRUE(Set(field, field.most).ok()) << field.name;
    EXPECT_TRUE(Set(field, (field.least + field.most) / 2 + 0.25).ok()) << field.name;
    const double infinity = std::numeric_limits<double>::infinity();
    for (double bad : {field.least - 0.01, field.most + 0.01, infinity, -infinity, std::nan("")}) {
      const absl::Status status = Set(field, bad);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field.name << " " << bad;
      EXPECT_THAT(std::string(status.message()), HasSubstr(field.name));
    }
  }
}

TEST(Validate, TextNamesFieldValueAndLimit) {
  SamplingParams params;
  params.top_p = 1.5;
  EXPECT_EQ(Validate(params, kVocab).message(), "sampling.top_p is 1.5; it must be in (0, 1]");
}

TEST(Validate, TokenIds) {
  SamplingParams params;
  params.logit_bias = {{kVocab - 1, 1.0f}};
  params.stop_ids = {kVocab - 1, 0, 0};
  EXPECT_TRUE(Validate(params, kVocab).ok());
  params.logit_bias = {{kVocab, 1.0f}};
  EXPECT_EQ(Validate(params, kVocab).message(),
            "sampling.logit_bias names token 100; ids must be below the vocabulary size 100");
  params.logit_bias = {{3, 1.0f}, {4, 1.0f}, {3, 1.0f}};
  EXPECT_THAT(std::string(Validate(params, kVocab).message()), HasSubstr("token 3 twice"));
  params.logit_bias.clear();
  params.stop_ids = {kVocab};
  EXPECT_THAT(std::string(Validate(params, kVocab).message()),
              AllOf(HasSubstr("stop_token_ids"), HasSubstr("100")));
}

}  // namespace
}  // namespace baton
