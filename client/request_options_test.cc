#include "client/request_options.h"

#include <gtest/gtest.h>

#include "common/options.h"

namespace baton {
namespace {

// The request that a command line makes.
absl::StatusOr<v1::GenerateRequest> Parse(std::vector<const char*> arguments) {
  RequestOptions options;
  arguments.insert(arguments.begin(), "test");
  const auto text = ParseOptions({"test", "", ""}, Describe(&options), static_cast<int>(arguments.size()),
                                 arguments.data());
  if (!text.ok()) return text.status();
  v1::GenerateRequest request;
  const absl::Status status = ApplyTo(options, request);
  if (!status.ok()) return status;
  return request;
}

TEST(RequestOptions, DefaultsLeaveEveryFieldOut) {
  const auto request = Parse({});
  ASSERT_TRUE(request.ok());
  v1::GenerateRequest nothing;
  nothing.mutable_sampling();
  nothing.mutable_stopping();
  EXPECT_EQ(request->SerializeAsString(), nothing.SerializeAsString());
}

TEST(RequestOptions, EveryFieldCanBeSet) {
  const auto request = Parse({"--model",
                              "m",
                              "--max-tokens",
                              "7",
                              "--min-tokens",
                              "2",
                              "--temperature",
                              "0",
                              "--top-p",
                              "0.5",
                              "--top-k",
                              "3",
                              "--min-p",
                              "0.25",
                              "--presence-penalty",
                              "-1",
                              "--frequency-penalty",
                              "1.5",
                              "--repetition-penalty",
                              "2",
                              "--seed",
                              "18446744073709551615",
                              "--logit-bias",
                              "5=-1.5,6=2",
                              "--stop",
                              "a,b",
                              "--stop",
                              "c",
                              "--stop-token-ids",
                              "1,2",
                              "--ignore-eos",
                              "--include-stop",
                              "--time-limit",
                              "1500ms",
                              "--keep-special-tokens",
                              "--parse-control-tokens"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->model(), "m");
  EXPECT_EQ(request->sampling().temperature(), 0);
  EXPECT_TRUE(request->sampling().has_temperature());
  EXPECT_EQ(request->sampling().top_p(), 0.5);
  EXPECT_EQ(request->sampling().top_k(), 3u);
  EXPECT_EQ(request->sampling().min_p(), 0.25);
  EXPECT_EQ(request->sampling().presence_penalty(), -1);
  EXPECT_EQ(request->sampling().frequency_penalty(), 1.5);
  EXPECT_EQ(request->sampling().repetition_penalty(), 2);
  EXPECT_EQ(request->sampling().seed(), 18446744073709551615u);
  EXPECT_EQ(request->sampling().logit_bias().at(5), -1.5);
  EXPECT_EQ(request->sampling().logit_bias().at(6), 2);
  EXPECT_EQ(request->stopping().max_tokens(), 7u);
  EXPECT_EQ(request->stopping().min_tokens(), 2u);
  ASSERT_EQ(request->stopping().stop_size(), 2);
  EXPECT_EQ(request->stopping().stop(0), "a,b");
  EXPECT_EQ(request->stopping().stop_token_ids(1), 2u);
  EXPECT_TRUE(request->stopping().ignore_eos());
  EXPECT_TRUE(request->stopping().include_stop());
  EXPECT_EQ(request->stopping().time_limit_ms(), 1500);
  EXPECT_TRUE(request->response().has_skip_special_tokens());
  EXPECT_FALSE(request->response().skip_special_tokens());
  EXPECT_TRUE(request->parse_control_tokens());
}

TEST(RequestOptions, ErrorsNameTheFlag) {
  for (const auto& [flag, value] :
       std::vector<std::pair<const char*, const char*>>{{"--seed", "x"},
                                                        {"--seed", "-1"},
                                                        {"--logit-bias", "5"},
                                                        {"--logit-bias", "5=nan"},
                                                        {"--logit-bias", "-5=1"},
                                                        {"--stop-token-ids", "4294967296"},
                                                        {"--top-p", "1.5"}}) {
    const auto request = Parse({flag, value});
    ASSERT_FALSE(request.ok()) << flag;
    EXPECT_NE(request.status().message().find(flag), absl::string_view::npos) << request.status();
  }
}

}  // namespace
}  // namespace baton
