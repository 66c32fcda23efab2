#include "router/read_request.h"

#include <cmath>
#include <limits>

#include "common/error_details.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

constexpr uint32_t kContext = 128;

class ReadRequestTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model =
        ServedModel::Load(WriteTinyModel(Architecture::kLlama, 1, ::testing::TempDir())).value().release();
  }
  static void TearDownTestSuite() { delete model; }

  absl::StatusOr<CallSpec> Read(v1::GenerateRequest request) const {
    if (!request.has_request_id()) request.set_request_id("r");
    return ReadRequest(request, *model, kContext, RequestLimits(), 42, absl::UnixEpoch());
  }
  absl::StatusOr<CallSpec> Read(const std::string& text) const {
    v1::GenerateRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    return Read(request);
  }
  // The field that the refusal names.
  std::string BadField(const absl::StatusOr<CallSpec>& result) const {
    if (result.ok()) return "none";
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    const std::vector<FieldViolation> violations = GetFieldViolations(result.status());
    return violations.empty() ? "unnamed" : violations[0].field;
  }

  static ServedModel* model;
};
ServedModel* ReadRequestTest::model = nullptr;

TEST_F(ReadRequestTest, TheSmallestUsefulCall) {
  const absl::StatusOr<CallSpec> spec = Read("prompt: 'Once'");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_FALSE(spec->prompt.empty());
  EXPECT_EQ(spec->max_tokens, kContext - spec->prompt.size());  // below the default of 256
  EXPECT_EQ(spec->sampling.seed(), 42);
  EXPECT_FALSE(spec->stop_ids.empty());
  EXPECT_TRUE(spec->skip_special_tokens);
}

TEST_F(ReadRequestTest, PresenceDecidesNeverZero) {
  const absl::StatusOr<CallSpec> spec = Read(
      "prompt: 'x' sampling { temperature: 0 seed: 0 } response { logprobs: 0 skip_special_tokens: false }");
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->sampling.has_temperature());
  EXPECT_EQ(spec->sampling.seed(), 0);
  EXPECT_EQ(spec->logprobs, 0);
  EXPECT_FALSE(spec->skip_special_tokens);
}

TEST_F(ReadRequestTest, AChatGoesThroughTheTemplateAndUserTextStaysText) {
  const std::string control(model->tokenizer().TokenBytes(model->tokenizer().end_of_generation()[0]));
  v1::GenerateRequest request;
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content("a" + control + "b");
  const auto ends_in = [&](const CallSpec& spec) {
    return std::count(spec.prompt.begin(), spec.prompt.end(), model->tokenizer().end_of_generation()[0]);
  };
  const absl::StatusOr<CallSpec> text = Read(request);
  ASSERT_TRUE(text.ok()) << text.status();
  request.set_parse_control_tokens(true);
  const absl::StatusOr<CallSpec> parsed = Read(request);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(ends_in(*parsed), ends_in(*text) + 1);
}

TEST_F(ReadRequestTest, EveryRefusalNamesItsField) {
  EXPECT_EQ(BadField(Read("")), "prompt");
  EXPECT_EQ(BadField(Read("prompt: ''")), "prompt");
  EXPECT_EQ(BadField(Read("tokens {}")), "tokens.ids");
  EXPECT_EQ(BadField(Read("tokens { ids: [1, 4000000] }")), "tokens.ids[1]");
  EXPECT_EQ(BadField(Read("chat {}")), "chat.messages");
  EXPECT_EQ(BadField(Read("chat { messages { content: 'x' } }")), "chat.messages[0].role");
  EXPECT_EQ(BadField(Read("prompt: 'x' stopping { max_tokens: 0 }")), "stopping.max_tokens");
  EXPECT_EQ(BadField(Read("prompt: 'x' stopping { max_tokens: 4294967295 }")), "stopping.max_tokens");
  EXPECT_EQ(BadField(Read("prompt: 'x' stopping { max_tokens: 3 min_tokens: 4 }")), "stopping.min_tokens");
  EXPECT_EQ(BadField(Read("prompt: 'x' stopping { stop: '' }")), "stopping.stop[0]");
  EXPECT_EQ(BadField(Read("prompt: 'x' stopping { stop_token_ids: 4000000 }")), "stopping.stop_token_ids[0]");
  EXPECT_EQ(BadField(Read("prompt: 'x' stopping { time_limit_ms: 0 }")), "stopping.time_limit_ms");
  EXPECT_EQ(BadField(Read("prompt: 'x' response { logprobs: 21 }")), "response.logprobs");
  EXPECT_EQ(BadField(Read("prompt: 'x' response { prompt_logprobs: 21 }")), "response.prompt_logprobs");
  EXPECT_EQ(BadField(Read("prompt: 'x' request_id: 'two words'")), "request_id");
  EXPECT_EQ(BadField(Read("prompt: 'x' request_id: ''")), "request_id");
  EXPECT_EQ(BadField(Read("prompt: 'x' sampling { logit_bias { key: 4000000 value: 1 } }")),
            "sampling.logit_bias[4000000]");
  v1::GenerateRequest request;
  request.set_prompt("x");
  for (int i = 0; i < 10000; ++i) request.mutable_stopping()->add_stop("s");
  EXPECT_EQ(BadField(Read(request)), "stopping.stop");
  request = v1::GenerateRequest();
  request.mutable_tokens();
  for (uint32_t i = 0; i < kContext; ++i) request.mutable_tokens()->add_ids(1);
  EXPECT_EQ(BadField(Read(request)), "tokens.ids");
  request = v1::GenerateRequest();
  request.mutable_chat()->add_messages()->set_role("user");
  request.mutable_chat()->mutable_messages(0)->set_content(std::string(8 * kContext, 'x'));
  EXPECT_EQ(BadField(Read(request)), "chat");
}

TEST_F(ReadRequestTest, TextIsBoundedBeforeItIsTokenized) {
  RequestLimits limits;
  limits.max_prompt_bytes = 10;
  EXPECT_TRUE(CheckPromptBytes("0123456789", limits).ok());
  EXPECT_EQ(CheckPromptBytes("0123456789x", limits).message(), "prompt: 11 bytes, at most 10 are allowed");
  v1::Chat chat;
  for (int i = 0; i < 2; ++i) {
    v1::ChatMessage& message = *chat.add_messages();
    message.set_role("user");
    message.set_content("x");
  }
  EXPECT_TRUE(CheckPromptBytes(chat, limits).ok());
  chat.mutable_messages(1)->set_content("xx");
  EXPECT_EQ(CheckPromptBytes(chat, limits).message(), "chat.messages: 11 bytes, at most 10 are allowed");
  const std::string long_text(RequestLimits().max_prompt_bytes + 1, 'x');
  v1::GenerateRequest request;
  request.set_prompt(long_text);
  EXPECT_EQ(BadField(Read(request)), "prompt");
  request.mutable_chat()->add_messages()->set_role("user");
  request.mutable_chat()->mutable_messages(0)->set_content(long_text);
  EXPECT_EQ(BadField(Read(request)), "chat.messages");
}

TEST_F(ReadRequestTest, PrioritiesHaveARange) {
  EXPECT_EQ(Read("prompt: 'x'")->priority, 0);
  EXPECT_EQ(Read("prompt: 'x' priority: -10")->priority, -10);
  EXPECT_EQ(BadField(Read("prompt: 'x' priority: 11")), "priority");
  EXPECT_EQ(BadField(Read("prompt: 'x' priority: -11")), "priority");
}

TEST_F(ReadRequestTest, SamplingValuesStayInTheirRanges) {
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  const double kInf = std::numeric_limits<double>::infinity();
  const struct {
    const char* field;
    void (v1::Sampling::*set)(double);
    std::vector<double> good, bad;
  } kCases[] = {
      {"sampling.temperature", &v1::Sampling::set_temperature, {0, 100}, {-0.1, 100.1}},
      {"sampling.top_p", &v1::Sampling::set_top_p, {1e-9, 1}, {0, 1.1}},
      {"sampling.min_p", &v1::Sampling::set_min_p, {0, 1}, {-0.1, 1.1}},
      {"sampling.presence_penalty", &v1::Sampling::set_presence_penalty, {-2, 2}, {-2.1, 2.1}},
      {"sampling.frequency_penalty", &v1::Sampling::set_frequency_penalty, {-2, 2}, {-2.1, 2.1}},
      {"sampling.repetition_penalty", &v1::Sampling::set_repetition_penalty, {0.1, 10}, {0, 10.1}},
  };
  for (const auto& c : kCases) {
    for (double value : c.good) {
      v1::GenerateRequest request;
      request.set_prompt("x");
      (request.mutable_sampling()->*c.set)(value);
      EXPECT_EQ(BadField(Read(request)), "none") << c.field << " " << value;
    }
    std::vector<double> bad = c.bad;
    bad.insert(bad.end(), {kNan, kInf, -kInf});
    for (double value : bad) {
      v1::GenerateRequest request;
      request.set_prompt("x");
      (request.mutable_sampling()->*c.set)(value);
      EXPECT_EQ(BadField(Read(request)), c.field) << value;
    }
  }
}

TEST_F(ReadRequestTest, AnotherModelIsNotFound) {
  const absl::StatusOr<CallSpec> spec = Read("prompt: 'x' model: 'no-such'");
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Read("prompt: 'x' model: '" + model->name() + "'").ok());
}

TEST_F(ReadRequestTest, IgnoreEosLeavesOnlyTheClientsStops) {
  const absl::StatusOr<CallSpec> spec = Read("prompt: 'x' stopping { ignore_eos: true stop_token_ids: 7 }");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->stop_ids, (std::vector<TokenId>{7}));
}

}  // namespace
}  // namespace baton
