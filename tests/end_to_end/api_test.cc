#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "common/error_details.h"
#include "common/utf8.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/tiny_cluster.h"

namespace baton {
namespace {

// Every field of GenerateRequest, and what comes back, on a cluster that the tests share.
class ApiTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model = new TinyModel(1, 1);
    cluster = new Cluster(model->options());
  }
  static void TearDownTestSuite() {
    delete cluster;
    delete model;
  }
  void TearDown() override {
    model->OpenGates();
    cluster->ExpectIdle();
  }

  static v1::Inference::Stub& stub() { return cluster->inference(); }
  static const Tokenizer& tokenizer() { return model->served->tokenizer(); }
  static TokenId Token(std::string_view text) { return tokenizer().FindToken(text).value(); }

  // The answer as Generate gives it; GenerateStream must give the same.
  static v1::GenerateResponse Ask(const v1::GenerateRequest& request) {
    const Answer whole = Generate(stub(), request);
    EXPECT_TRUE(whole.status.ok()) << whole.status;
    v1::GenerateRequest again = request;
    if (whole.whole.has_seed()) again.mutable_sampling()->set_seed(whole.whole.seed());
    const Answer streamed = Stream(stub(), again);
    EXPECT_TRUE(streamed.status.ok()) << streamed.status;
    EXPECT_EQ(Difference(Decided(streamed.whole), Decided(whole.whole)), "");
    return whole.whole;
  }
  static v1::GenerateResponse Ask(const std::string& text) { return Ask(Request(text)); }

  // A request whose every token is `token`, in as far as the biases decide.
  static v1::GenerateRequest Repeating(std::string_view token, uint32_t max_tokens) {
    v1::GenerateRequest request =
        Request("prompt: 'and then' sampling { temperature: 0 } response { return_tokens: true }");
    (*request.mutable_sampling()->mutable_logit_bias())[Token(token)] = 100;
    request.mutable_stopping()->set_max_tokens(max_tokens);
    return request;
  }

  static inline TinyModel* model = nullptr;
  static inline Cluster* cluster = nullptr;
};

TEST_F(ApiTest, TheSmallestUsefulCall) {
  const v1::GenerateResponse answer = Ask("prompt: 'Once upon a time'");
  EXPECT_EQ(answer.model(), "tiny-llama");
  EXPECT_FALSE(answer.request_id().empty());
  EXPECT_GT(answer.usage().completion_tokens(), 0);
  EXPECT_LE(answer.usage().completion_tokens(), 256);
  EXPECT_TRUE(answer.has_seed());
  EXPECT_NE(answer.finish().reason(), v1::FINISH_REASON_UNSPECIFIED);
  EXPECT_EQ(answer.tokens_size(), 0);
  EXPECT_EQ(answer.logprobs_size(), 0);
  EXPECT_EQ(answer.timings().path(), v1::SERVING_PATH_DISAGGREGATED);
}

TEST_F(ApiTest, UsageCountsEveryTokenOnce) {
  const v1::GenerateResponse answer =
      Ask("prompt: 'hello world' sampling { temperature: 0 } stopping { max_tokens: 9 ignore_eos: true } "
          "response { return_tokens: true }");
  EXPECT_EQ(answer.usage().prompt_tokens(), tokenizer().Encode({{"hello world"}}, true)->size());
  EXPECT_EQ(answer.prompt().prompt_tokens(), answer.usage().prompt_tokens());
  EXPECT_EQ(answer.usage().cached_tokens(), 0);
  EXPECT_EQ(answer.usage().completion_tokens(), 9);
  EXPECT_EQ(answer.tokens_size(), 9);
  EXPECT_EQ(answer.finish().reason(), v1::FINISH_REASON_LENGTH);
}

TEST_F(ApiTest, TokensAreTakenAsTheyAre) {
  const v1::GenerateResponse by_text =
      Ask("prompt: 'hello world' sampling { temperature: 0 } stopping { max_tokens: 6 }");
  v1::GenerateRequest request = Request("sampling { temperature: 0 } stopping { max_tokens: 6 }");
  const std::vector<TokenId> ids = *tokenizer().Encode({{"hello world"}}, true);
  request.mutable_tokens()->mutable_ids()->Assign(ids.begin(), ids.end());
  v1::GenerateResponse by_tokens = Ask(request);
  by_tokens.set_seed(by_text.seed());
  EXPECT_EQ(Difference(Decided(by_tokens), Decided(by_text)), "");
}

TEST_F(ApiTest, ASeedDecidesTheAnswer) {
  v1::GenerateRequest request = Request(
      "prompt: 'hello' sampling { temperature: 1.5 } stopping { max_tokens: 24 ignore_eos: true } "
      "response { return_tokens: true }");
  const v1::GenerateResponse first = Ask(request);
  request.mutable_sampling()->set_seed(first.seed());
  EXPECT_EQ(Difference(Decided(Ask(request)), Decided(first)), "");
  request.mutable_sampling()->set_seed(first.seed() + 1);
  const v1::GenerateResponse other = Ask(request);
  EXPECT_NE(other.text(), first.text());
  EXPECT_EQ(other.seed(), first.seed() + 1);
}

TEST_F(ApiTest, EverySamplingFieldReachesTheSampler) {
  const std::string rest = "} prompt: 'hello and the' stopping { max_tokens: 48 ignore_eos: true }";
  const auto text = [&](const std::string& sampling) {
    return Ask("sampling { seed: 5 " + sampling + rest).text();
  };
  const std::string greedy = text("temperature: 0");
  const std::string sampled = text("temperature: 2");
  EXPECT_NE(sampled, greedy);
  EXPECT_NE(text("temperature: 3"), sampled);
  EXPECT_EQ(text("temperature: 2 top_k: 1"), greedy);
  EXPECT_EQ(text("temperature: 2 top_p: 1e-6"), greedy);
  EXPECT_EQ(text("temperature: 2 min_p: 1"), greedy);
  EXPECT_NE(text("temperature: 0 repetition_penalty: 10"), greedy);
  EXPECT_NE(text("temperature: 0 presence_penalty: 2"), greedy);
  EXPECT_NE(text("temperature: 0 frequency_penalty: 2"), greedy);
}

TEST_F(ApiTest, ALogitBiasForcesAndForbids) {
  const v1::GenerateResponse forced = Ask(Repeating("he", 3));
  EXPECT_EQ(forced.text(), "hehehe");
  v1::GenerateRequest request = Request(
      "prompt: 'and then' sampling { temperature: 0 } stopping { max_tokens: 1 ignore_eos: true } "
      "response { return_tokens: true }");
  const uint32_t natural = Ask(request).tokens(0);
  (*request.mutable_sampling()->mutable_logit_bias())[natural] = -100;
  EXPECT_NE(Ask(request).tokens(0), natural);
}

TEST_F(ApiTest, AStopStringSpansTokensAndTheHandoff) {
  // "he" comes from prefill, the others from decode.
  v1::GenerateRequest request = Repeating("he", 10);
  request.mutable_stopping()->add_stop("nothing");
  request.mutable_stopping()->add_stop("eheh");
  v1::GenerateResponse answer = Ask(request);
  EXPECT_EQ(answer.text(), "h");
  EXPECT_EQ(answer.usage().completion_tokens(), 3);
  EXPECT_EQ(answer.tokens_size(), 3);
  EXPECT_EQ(answer.finish().reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(answer.finish().stop_string(), "eheh");
  request.mutable_stopping()->set_include_stop(true);
  EXPECT_EQ(Ask(request).text(), "heheh");
  // One that begins but is never completed is released with the end.
  request = Repeating("he", 2);
  request.mutable_stopping()->add_stop("ehex");
  answer = Ask(request);
  EXPECT_EQ(answer.text(), "hehe");
  EXPECT_EQ(answer.finish().reason(), v1::FINISH_REASON_LENGTH);
}

TEST_F(ApiTest, StopTokensAndTheLeastNumberOfTokens) {
  const TokenId he = Token("he");
  v1::GenerateRequest request = Repeating("he", 10);
  request.mutable_stopping()->add_stop_token_ids(he);
  v1::GenerateResponse answer = Ask(request);
  EXPECT_EQ(answer.finish().reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(answer.finish().stop_token(), he);
  EXPECT_EQ(answer.usage().completion_tokens(), 1);
  EXPECT_EQ(answer.text(), "");
  request.mutable_stopping()->set_include_stop(true);
  EXPECT_EQ(Ask(request).text(), "he");
  request.mutable_stopping()->set_min_tokens(3);
  answer = Ask(request);
  EXPECT_EQ(answer.usage().completion_tokens(), 4);  // three others, then the one that stops
  EXPECT_EQ(answer.tokens(3), he);
  EXPECT_EQ(std::count(answer.tokens().begin(), answer.tokens().end(), he), 1);
  // Stop strings wait as well.
  request = Repeating("he", 10);
  request.mutable_stopping()->add_stop("he");
  request.mutable_stopping()->set_min_tokens(3);
  answer = Ask(request);
  EXPECT_EQ(answer.usage().completion_tokens(), 3);
  EXPECT_EQ(answer.text(), "hehe");
}

TEST_F(ApiTest, TheEndOfAnAnswerMayBeIgnored) {
  const TokenId end = Token("<|im_end|>");
  v1::GenerateRequest request = Repeating("<|im_end|>", 4);
  v1::GenerateResponse answer = Ask(request);
  EXPECT_EQ(answer.finish().stop_token(), end);
  EXPECT_EQ(answer.usage().completion_tokens(), 1);
  request.mutable_stopping()->set_ignore_eos(true);
  answer = Ask(request);
  EXPECT_EQ(answer.finish().reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(answer.usage().completion_tokens(), 4);
  EXPECT_EQ(answer.text(), "");
  request.mutable_response()->set_skip_special_tokens(false);
  EXPECT_EQ(Ask(request).text(), "<|im_end|><|im_end|><|im_end|><|im_end|>");
}

TEST_F(ApiTest, OneTokenIsOneToken) {
  const v1::GenerateResponse answer = Ask(Repeating("hello", 1));
  EXPECT_EQ(answer.text(), "hello");
  EXPECT_EQ(answer.tokens_size(), 1);
  EXPECT_EQ(answer.usage().completion_tokens(), 1);
  EXPECT_EQ(answer.finish().reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_FALSE(answer.timings().has_tpot_ms());
  EXPECT_TRUE(answer.timings().has_ttft_ms());
}

TEST_F(ApiTest, ATimeLimitEndsAnAnswerWithWhatThereIs) {
  GatedEngine& gate = model->decode[0]->gate();
  gate.Close();
  v1::GenerateRequest request = Repeating("hello", 100);
  request.mutable_stopping()->set_time_limit_ms(400);
  const Answer answer = Stream(stub(), request);
  gate.Open();
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.whole.finish().reason(), v1::FINISH_REASON_TIME_LIMIT);
  EXPECT_EQ(answer.whole.text(), "hello");  // prefill's; decode's steps wait
  EXPECT_EQ(answer.whole.usage().completion_tokens(), 1);
}

// A distribution's `top`, of which `chosen` is the one that was taken: descending, and no more than all of
// it.
void ExpectLogprobs(const v1::PositionLogprobs& position, int top) {
  ASSERT_EQ(position.top_size(), top);
  double sum = 0;
  for (int i = 0; i < top; ++i) {
    EXPECT_LE(position.top(i).logprob(), i == 0 ? 0 : position.top(i - 1).logprob());
    EXPECT_TRUE(position.top(i).has_text());
    sum += std::exp(position.top(i).logprob());
  }
  EXPECT_LE(sum, 1 + 1e-6);
}

TEST_F(ApiTest, LogprobsOfTheAnswer) {
  const v1::GenerateResponse answer =
      Ask("prompt: 'hello' sampling { temperature: 0 } stopping { max_tokens: 5 ignore_eos: true } "
          "response { logprobs: 4 return_tokens: true }");
  ASSERT_EQ(answer.logprobs_size(), 5);
  for (int i = 0; i < 5; ++i) {
    const v1::PositionLogprobs& position = answer.logprobs(i);
    ExpectLogprobs(position, 4);
    EXPECT_EQ(position.token().token(), answer.tokens(i));
    EXPECT_EQ(position.token().token(), position.top(0).token());  // greedy
    EXPECT_EQ(position.token().logprob(), position.top(0).logprob());
  }
  const v1::GenerateResponse own =
      Ask("prompt: 'hello' sampling { temperature: 0 } stopping { max_tokens: 2 ignore_eos: true } response "
          "{ logprobs: 0 }");
  ASSERT_EQ(own.logprobs_size(), 2);
  EXPECT_EQ(own.logprobs(1).top_size(), 0);
  EXPECT_EQ(own.logprobs(1).token().logprob(), answer.logprobs(1).token().logprob());
  // They are of the distribution before any sampling parameter.
  const v1::GenerateResponse hot =
      Ask("prompt: 'hello' sampling { temperature: 9 } stopping { max_tokens: 1 ignore_eos: true } response "
          "{ logprobs: 4 }");
  EXPECT_EQ(hot.logprobs(0).top(3).logprob(), answer.logprobs(0).top(3).logprob());
}

TEST_F(ApiTest, LogprobsOfThePrompt) {
  std::string prompt;
  for (int i = 0; i < 20; ++i) prompt += "hello world and ";  // more than a chunk
  v1::GenerateRequest request = Request("stopping { max_tokens: 1 } response { prompt_logprobs: 2 }");
  request.set_prompt(prompt);
  const v1::GenerateResponse answer = Ask(request);
  const std::vector<TokenId> tokens = *tokenizer().Encode({{prompt}}, true);
  ASSERT_GT(tokens.size(), 64);
  ASSERT_EQ(answer.prompt().logprobs_size(), tokens.size() - 1);
  for (size_t i = 1; i < tokens.size(); ++i) {
    const v1::PositionLogprobs& position = answer.prompt().logprobs(static_cast<int>(i - 1));
    EXPECT_EQ(position.token().token(), tokens[i]);
    EXPECT_LE(position.token().logprob(), position.top(0).logprob());
    ExpectLogprobs(position, 2);
  }
}

TEST_F(ApiTest, AChatIsItsTemplatesPrompt) {
  const std::string options = "sampling { temperature: 0 seed: 1 } stopping { max_tokens: 6 }";
  const std::string messages =
      "messages { role: 'system' content: 'be kind' } messages { role: 'user' content: 'hello' }";
  const v1::GenerateResponse chat = Ask("chat { " + messages + " }" + options);
  v1::GenerateRequest request = Request("parse_control_tokens: true " + options);
  request.set_prompt(
      "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(Difference(Decided(chat), Decided(Ask(request))), "");
  // The same text as a user's own is no control token.
  request.clear_parse_control_tokens();
  EXPECT_GT(Ask(request).usage().prompt_tokens(), chat.usage().prompt_tokens());
}

TEST_F(ApiTest, ARequestIdIsTakenOrMinted) {
  v1::GenerateRequest request = Request("request_id: 'my-own.1' prompt: 'x' stopping { max_tokens: 2 }");
  Answer answer = Generate(stub(), request);
  EXPECT_EQ(answer.headers["x-request-id"], "my-own.1");
  EXPECT_EQ(answer.whole.request_id(), "my-own.1");
  EXPECT_EQ(Stream(stub(), request).headers["x-request-id"], "my-own.1");
  request.clear_request_id();
  answer = Generate(stub(), request);
  EXPECT_FALSE(answer.whole.request_id().empty());
  EXPECT_EQ(answer.headers["x-request-id"], answer.whole.request_id());
  EXPECT_NE(Stream(stub(), request).headers["x-request-id"], answer.whole.request_id());
}

TEST_F(ApiTest, AStreamIsDeltas) {
  const Answer answer = Stream(stub(), Request("prompt: 'hello' sampling { temperature: 2 seed: 3 } "
                                               "stopping { max_tokens: 60 ignore_eos: true } "
                                               "response { return_tokens: true }"));
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  ASSERT_GE(answer.messages.size(), 1);
  uint32_t tokens = 0;
  for (const v1::GenerateStreamResponse& message : answer.messages) {
    const bool last = &message == &answer.messages.back();
    EXPECT_EQ(message.has_index(), message.count() > 0);
    EXPECT_EQ(message.index(), tokens);
    EXPECT_EQ(message.tokens_size(), message.count());
    EXPECT_TRUE(IsValidUtf8(message.text()));
    EXPECT_EQ(message.has_prompt(), tokens == 0);
    EXPECT_EQ(message.has_seed(), tokens == 0);
    EXPECT_EQ(message.has_finish(), last);
    EXPECT_EQ(message.has_usage(), last);
    EXPECT_EQ(message.has_timings(), last);
    tokens += message.count();
  }
  EXPECT_EQ(tokens, 60);
  // Whole characters, and what could not be completed replaced: the text is what its tokens stand for.
  v1::DetokenizeRequest detokenize;
  *detokenize.mutable_tokens() = answer.whole.tokens();
  grpc::ClientContext context;
  v1::DetokenizeResponse text;
  ASSERT_TRUE(stub().Detokenize(&context, detokenize, &text).ok());
  EXPECT_EQ(answer.whole.text(), text.text());
}

TEST_F(ApiTest, TokenizeAndDetokenizeAreInverse) {
  for (const std::string text :
       {"hello world", " two  spaces\n", "caf\u00e9 \u4e16\u754c \U0001F600", "<|im_end|>"}) {
    grpc::ClientContext context;
    v1::TokenizeRequest request;
    request.set_prompt(text);
    v1::TokenizeResponse tokens;
    ASSERT_TRUE(stub().Tokenize(&context, request, &tokens).ok());
    ASSERT_EQ(tokens.texts_size(), tokens.tokens_size());
    for (const std::string& each : tokens.texts()) EXPECT_TRUE(IsValidUtf8(each));
    grpc::ClientContext back_context;
    v1::DetokenizeRequest back;
    *back.mutable_tokens() = tokens.tokens();
    v1::DetokenizeResponse whole;
    ASSERT_TRUE(stub().Detokenize(&back_context, back, &whole).ok());
    EXPECT_EQ(whole.text(), text);
  }
  grpc::ClientContext context;
  v1::TokenizeRequest request;
  request.set_prompt("<|im_end|>");
  request.set_parse_control_tokens(true);
  v1::TokenizeResponse control;
  ASSERT_TRUE(stub().Tokenize(&context, request, &control).ok());
  ASSERT_EQ(control.tokens_size(), 1);
  EXPECT_EQ(control.tokens(0), Token("<|im_end|>"));
  EXPECT_EQ(control.texts(0), "<|im_end|>");
}

TEST_F(ApiTest, TokenizeShowsWhatAChatBecomes) {
  grpc::ClientContext context;
  v1::TokenizeRequest request;
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content("hello");
  v1::TokenizeResponse response;
  ASSERT_TRUE(stub().Tokenize(&context, request, &response).ok());
  EXPECT_EQ(response.rendered(), "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(std::count(response.tokens().begin(), response.tokens().end(), Token("<|im_start|>")), 2);
}

TEST_F(ApiTest, TheTimingsAddUp) {
  // The first step of decode waits until prefill has said how long the handoff took.
  model->decode[0]->gate().Close();
  AnswerStream stream(stub(), Repeating("hello", 12));
  ASSERT_TRUE(stream.Next().has_value()) << stream.status();
  ASSERT_TRUE(cluster->prefill().client().AwaitIdle());
  model->decode[0]->gate().Open();
  const Answer answer = stream.Finish();
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  const v1::Timings& t = answer.whole.timings();
  EXPECT_GT(t.ttft_ms(), 0);
  EXPECT_GT(t.prefill_compute_ms(), 0);
  EXPECT_NEAR(t.tokenize_ms() + t.router_queue_ms() + t.reservation_ms() + t.prefill_queue_ms() +
                  t.prefill_compute_ms() + t.lost_attempts_ms() + t.network_ms(),
              t.ttft_ms(), 1);
  EXPECT_NEAR(t.ttft_ms() + 11 * t.tpot_ms(), t.e2e_ms(), 1e-6);
  EXPECT_EQ(t.lost_attempts_ms(), 0);
  EXPECT_EQ(t.recoveries(), 0);
  EXPECT_TRUE(t.has_handoff_ms());
  EXPECT_TRUE(t.has_decode_queue_ms());
  EXPECT_GT(t.first_step_ms(), 0);
  EXPECT_TRUE(t.has_first_gap_network_ms());
  EXPECT_GT(t.kv_bytes(), 0);
  EXPECT_EQ(t.transport(), "grpc");
  EXPECT_EQ(t.path_reason(), "default");
  EXPECT_EQ(t.prefill_worker(), cluster->prefill().instance_id());
  EXPECT_EQ(t.decode_worker(), cluster->decode().instance_id());
}

TEST_F(ApiTest, TheNetworkOfLoopbackIsShort) {
  // The best of several, since a busy machine delays threads.
  double least = 1e9;
  for (int i = 0; i < 10; ++i) least = std::min(least, Ask(Repeating("hello", 2)).timings().network_ms());
  EXPECT_LT(least, 20);
}

TEST_F(ApiTest, TheTrailerHasTheSameTimings) {
  for (const Answer& answer :
       {Generate(stub(), Repeating("hello", 3)), Stream(stub(), Repeating("hello", 3))}) {
    ASSERT_TRUE(answer.trailers.contains("server-timing"));
    const std::string& trailer = answer.trailers.at("server-timing");
    const auto entry = [](const char* name, double ms) {
      char text[64];
      std::snprintf(text, sizeof(text), "%s;dur=%.3f", name, ms);
      return std::string(text);
    };
    EXPECT_EQ(trailer.find(entry("ttft", answer.whole.timings().ttft_ms())), 0) << trailer;
    for (const std::string& part : {entry("tpot", answer.whole.timings().tpot_ms()),
                                    entry("prefill_compute", answer.whole.timings().prefill_compute_ms()),
                                    entry("network", answer.whole.timings().network_ms())}) {
      EXPECT_NE(trailer.find(part), std::string::npos) << part << " in " << trailer;
    }
  }
}

TEST(ClientQuotaTest, AClientHasSoManyRequestsAtOnce) {
  const TinyModel model(1, 1);
  ClusterOptions options = model.options();
  options.inference.max_streams_per_client = 2;
  Cluster cluster(options);
  model.decode[0]->gate().Close();
  const v1::GenerateRequest request = Request("prompt: 'x' stopping { max_tokens: 3 ignore_eos: true }");
  {
    AnswerStream first(cluster.inference(), request);
    AnswerStream second(cluster.inference(), request);
    cluster.AwaitRequests(2);
    const absl::Status refused = Generate(cluster.inference(), request).status;
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_EQ(refused.message(), "this client has 2 requests at once, at most 2 are allowed");
    EXPECT_EQ(ErrorReason(refused), "TOO_MANY_STREAMS");
    EXPECT_EQ(GetRetryDelay(refused), absl::Seconds(1));
    model.OpenGates();
    EXPECT_TRUE(first.Finish().status.ok());
  }
  // The end of a call is known to its client a moment before its place is free.
  const absl::Time end = absl::Now() + absl::Seconds(10);
  absl::Status status;
  do {
    status = Generate(cluster.inference(), request).status;
  } while (absl::IsResourceExhausted(status) && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace baton
