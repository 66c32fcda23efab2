#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/error_details.h"
#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "common/raw_service.h"
#include "gtest/gtest.h"
#include "kv_transfer/landing.h"
#include "tests/end_to_end/tiny_cluster.h"
#include "tests/support/leg_requests.h"

namespace baton {
namespace {

constexpr char kGenerate[] = "/baton.v1.Inference/Generate";

// Whatever comes from outside is refused with its status and a text that helps, and the services serve on.
class BadInputTest : public testing::Test {
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
    const Answer answer =
        Stream(stub(), Request("prompt: 'hello' stopping { max_tokens: 4 ignore_eos: true }"));
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.whole.timings().path(), v1::SERVING_PATH_DISAGGREGATED);
    EXPECT_EQ(answer.whole.usage().completion_tokens(), 4);
    cluster->ExpectIdle();
  }
  static v1::Inference::Stub& stub() { return cluster->inference(); }

  // Both calls refuse `request` with this code and a text that has every one of `words`.
  static void ExpectRefused(const v1::GenerateRequest& request, absl::StatusCode code,
                            const std::vector<std::string>& words) {
    for (const Answer& answer : {Stream(stub(), request), Generate(stub(), request)}) {
      EXPECT_EQ(answer.status.code(), code) << answer.status;
      EXPECT_TRUE(answer.messages.empty());
      for (const std::string& word : words) {
        EXPECT_NE(answer.status.message().find(word), std::string::npos) << word << " in: " << answer.status;
      }
    }
  }
  static void ExpectInvalid(const std::string& text, const std::vector<std::string>& words) {
    ExpectRefused(Request(text), absl::StatusCode::kInvalidArgument, words);
  }
  // How the router answers a Generate call of these bytes.
  static absl::Status CallWith(const std::string& bytes) {
    grpc::ClientContext context;
    std::string response;
    return FromGrpcStatus(CallRaw(CreateChannel(cluster->address()), kGenerate, &context, bytes, &response));
  }

  static inline TinyModel* model = nullptr;
  static inline Cluster* cluster = nullptr;
};

TEST_F(BadInputTest, SamplingOutOfRange) {
  ExpectInvalid("prompt: 'x' sampling { temperature: -1 }", {"sampling.temperature", "-1", "[0, 100]"});
  ExpectInvalid("prompt: 'x' sampling { top_p: 0 }", {"sampling.top_p", "(0, 1]"});
  ExpectInvalid("prompt: 'x' sampling { min_p: 1.5 }", {"sampling.min_p", "1.5", "[0, 1]"});
  ExpectInvalid("prompt: 'x' sampling { presence_penalty: 3 }",
                {"sampling.presence_penalty", "3", "[-2, 2]"});
  ExpectInvalid("prompt: 'x' sampling { frequency_penalty: -3 }",
                {"sampling.frequency_penalty", "-3", "[-2, 2]"});
  ExpectInvalid("prompt: 'x' sampling { repetition_penalty: 0 }", {"sampling.repetition_penalty", "(0, 10]"});
  ExpectInvalid("prompt: 'x' sampling { logit_bias { key: 5 value: 101 } }",
                {"sampling.logit_bias[5]", "101", "100"});
  ExpectInvalid("prompt: 'x' sampling { logit_bias { key: 99999 value: 1 } }",
                {"sampling.logit_bias[99999]", "279"});
}

TEST_F(BadInputTest, SamplingThatIsNoNumber) {
  using Setter = void (v1::Sampling::*)(double);
  for (const auto& [field, set] : std::vector<std::pair<std::string, Setter>>{
           {"temperature", &v1::Sampling::set_temperature},
           {"top_p", &v1::Sampling::set_top_p},
           {"min_p", &v1::Sampling::set_min_p},
           {"presence_penalty", &v1::Sampling::set_presence_penalty},
           {"frequency_penalty", &v1::Sampling::set_frequency_penalty},
           {"repetition_penalty", &v1::Sampling::set_repetition_penalty}}) {
    for (double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      v1::GenerateRequest request = Request("prompt: 'x'");
      (request.mutable_sampling()->*set)(value);
      ExpectRefused(request, absl::StatusCode::kInvalidArgument, {"sampling." + field});
    }
  }
  v1::GenerateRequest request = Request("prompt: 'x'");
  (*request.mutable_sampling()->mutable_logit_bias())[3] = std::nan("");
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, {"sampling.logit_bias[3]"});
}

TEST_F(BadInputTest, PromptsThatCannotBe) {
  ExpectInvalid("", {"prompt"});
  ExpectInvalid("prompt: ''", {"prompt", "empty"});
  ExpectInvalid("tokens {}", {"tokens.ids", "empty"});
  ExpectInvalid("tokens { ids: [1, 2, 279] }", {"tokens.ids[2]", "279"});
  ExpectInvalid("tokens { ids: [4294967295] }", {"tokens.ids[0]", "4294967295", "279"});
  ExpectInvalid("chat {}", {"chat.messages", "empty"});
  v1::GenerateRequest longest;
  for (int i = 0; i < 1024; ++i) longest.mutable_tokens()->add_ids(100);
  ExpectRefused(longest, absl::StatusCode::kInvalidArgument, {"prompt", "1024"});
  longest.mutable_tokens()->mutable_ids()->RemoveLast();
  EXPECT_TRUE(Stream(stub(), longest).status.ok());  // room for one token
  longest.mutable_stopping()->set_max_tokens(2);
  ExpectRefused(longest, absl::StatusCode::kInvalidArgument, {"stopping.max_tokens", "2", "1023", "1024"});
}

TEST_F(BadInputTest, StoppingThatCannotBe) {
  ExpectInvalid("prompt: 'x' stopping { max_tokens: 0 }", {"stopping.max_tokens", "0"});
  ExpectInvalid("prompt: 'x' stopping { max_tokens: 4294967295 }",
                {"stopping.max_tokens", "4294967295", "1024"});
  ExpectInvalid("prompt: 'x' stopping { max_tokens: 4 min_tokens: 5 }", {"stopping.min_tokens", "5", "4"});
  ExpectInvalid("prompt: 'x' stopping { time_limit_ms: -1 }", {"stopping.time_limit_ms", "-1"});
  ExpectInvalid("prompt: 'x' stopping { stop_token_ids: 279 }", {"stopping.stop_token_ids[0]", "279"});
  ExpectInvalid("prompt: 'x' stopping { stop: '' }", {"stopping.stop[0]", "empty"});
  v1::GenerateRequest many = Request("prompt: 'x'");
  for (int i = 0; i < 10000; ++i) many.mutable_stopping()->add_stop("stop" + std::to_string(i));
  ExpectRefused(many, absl::StatusCode::kInvalidArgument, {"stopping.stop", "10000", "64"});
  v1::GenerateRequest large = Request("prompt: 'x'");
  large.mutable_stopping()->add_stop(std::string(1 << 20, 's'));
  ExpectRefused(large, absl::StatusCode::kInvalidArgument, {"stopping.stop[0]", "1048576", "1024"});
}

TEST_F(BadInputTest, OtherFieldsOutOfRange) {
  ExpectInvalid("prompt: 'x' response { logprobs: 21 }", {"response.logprobs", "21", "20"});
  ExpectInvalid("prompt: 'x' response { prompt_logprobs: 4000000000 }",
                {"response.prompt_logprobs", "4000000000", "20"});
  ExpectInvalid("prompt: 'x' request_id: ''", {"request_id", "empty"});
  ExpectInvalid("prompt: 'x' request_id: 'two words'", {"request_id"});
  v1::GenerateRequest request = Request("prompt: 'x'");
  request.set_request_id(std::string(1000, 'i'));
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, {"request_id", "1000", "128"});
}

TEST_F(BadInputTest, RefusalsNameTheirFieldForPrograms) {
  const Answer answer = Stream(stub(), Request("prompt: 'x' sampling { top_p: 7 }"));
  const std::vector<FieldViolation> violations = GetFieldViolations(answer.status);
  ASSERT_EQ(violations.size(), 1);
  EXPECT_EQ(violations[0].field, "sampling.top_p");
}

TEST_F(BadInputTest, AnUnknownModel) {
  ExpectRefused(Request("prompt: 'x' model: 'gpt-17'"), absl::StatusCode::kNotFound,
                {"model", "gpt-17", "tiny-llama"});
  EXPECT_TRUE(
      Stream(stub(), Request("prompt: 'x' model: 'tiny-llama' stopping { max_tokens: 1 }")).status.ok());
}

TEST_F(BadInputTest, ARequestIdThatIsInFlight) {
  model->decode[0]->gate().Close();
  const v1::GenerateRequest request =
      Request("prompt: 'x' request_id: 'twin' stopping { max_tokens: 4 ignore_eos: true }");
  AnswerStream first(stub(), request);
  ASSERT_TRUE(first.Next().has_value()) << first.status();
  ExpectRefused(request, absl::StatusCode::kAlreadyExists, {"request_id", "twin"});
  model->decode[0]->gate().Open();
  EXPECT_TRUE(first.Finish().status.ok());
  EXPECT_TRUE(Stream(stub(), request).status.ok());  // free again
}

TEST_F(BadInputTest, BytesThatAreNoRequest) {
  EXPECT_TRUE(CallWith("\x1a\x01x").ok());  // prompt: "x"
  const absl::Status malformed = CallWith("\x1a\x7fshort");
  EXPECT_EQ(malformed.code(), absl::StatusCode::kInvalidArgument) << malformed;
  EXPECT_NE(malformed.message().find("GenerateRequest"), std::string::npos) << malformed;
  const absl::Status bad_text = CallWith("\x1a\x02\xc3\x28");
  EXPECT_EQ(bad_text.code(), absl::StatusCode::kInvalidArgument) << bad_text;
  EXPECT_EQ(GetFieldViolations(bad_text).at(0).field, "prompt");
  std::string garbage;
  for (uint32_t i = 0, state = 1; i < 4096; ++i)
    garbage += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  EXPECT_EQ(CallWith(garbage).code(), absl::StatusCode::kInvalidArgument);
  // An empty message is a request without a prompt.
  EXPECT_EQ(GetFieldViolations(CallWith("")).at(0).field, "prompt");
}

TEST_F(BadInputTest, TokenizeAndDetokenizeCheckToo) {
  const auto tokenize = [&](const std::string& model_name, const std::string* prompt) {
    grpc::ClientContext context;
    v1::TokenizeRequest request;
    if (!model_name.empty()) request.set_model(model_name);
    if (prompt != nullptr) request.set_prompt(*prompt);
    v1::TokenizeResponse response;
    return FromGrpcStatus(stub().Tokenize(&context, request, &response));
  };
  const std::string hello = "hello";
  EXPECT_EQ(tokenize("gpt-17", &hello).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(tokenize("", nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(tokenize("", &hello).ok());
  grpc::ClientContext context;
  v1::DetokenizeRequest request;
  request.add_tokens(279);
  v1::DetokenizeResponse response;
  const absl::Status status = FromGrpcStatus(stub().Detokenize(&context, request, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetFieldViolations(status).at(0).field, "tokens[0]");
}

// What only a router sends comes from anyone who can reach the port.
TEST_F(BadInputTest, HostilePrefillLegs) {
  WorkerClient& worker = cluster->prefill().client();
  const KvGeometry& geometry = cluster->prefill().engine().kv().geometry();
  const auto make = [&](uint8_t number) {
    v1::PrefillRequest request = MakePrefillRequest(number, LetterPrompt(20));
    *request.mutable_landing() = MakeLanding(std::string(kTicketBytes, 't'), "decode-1", "127.0.0.1:1",
                                             {"grpc"}, geometry, {geometry.NeededAfter(0, 20)});
    return request;
  };
  const auto code = [&](const v1::PrefillRequest& request) {
    return worker.Prefill(request)->Finish().code();
  };
  EXPECT_EQ(code(make(1)), absl::StatusCode::kUnavailable);  // in order, but nobody is there
  EXPECT_EQ(code(v1::PrefillRequest()), absl::StatusCode::kInvalidArgument);
  v1::PrefillRequest request = make(2);
  request.mutable_attempt()->set_transfer_id("short");
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = make(3);
  request.mutable_landing()->set_ticket(std::string(1 << 20, 't'));
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = make(4);
  request.mutable_landing()->mutable_wanted(0)->set_group(4000000000u);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = make(5);
  request.mutable_landing()->mutable_wanted(0)->set_token_end(4000000000u);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = make(6);
  request.mutable_landing()->set_block_tokens(0);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = make(7);
  request.mutable_landing()->set_protocol_version(4000000000u);
  EXPECT_EQ(code(request), absl::StatusCode::kFailedPrecondition);
  request = make(8);
  request.mutable_request()->set_max_tokens(4294967295u);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
}

TEST_F(BadInputTest, HostileDecodeLegs) {
  WorkerClient& worker = cluster->decode().client();
  const auto code = [&](const v1::DecodeRequest& request) { return worker.Decode(request)->Finish().code(); };
  EXPECT_EQ(code(v1::DecodeRequest()), absl::StatusCode::kInvalidArgument);
  v1::DecodeRequest request = MakeLocalRequest(1, LetterPrompt(20), 8);
  request.mutable_attempt()->set_transfer_id("");
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = MakeLocalRequest(2, LetterPrompt(20), 8);
  request.mutable_request()->set_max_tokens(4294967295u);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = MakeLocalRequest(3, LetterPrompt(20), 8);
  request.mutable_request()->mutable_sampling()->set_temperature(std::nan(""));
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = MakeLocalRequest(4, {1, 2, 4000000000u}, 8);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request = MakeLocalRequest(5, LetterPrompt(20), 8);
  request.mutable_request()->set_logprobs(4000000000u);
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
}

TEST_F(BadInputTest, HostileBytesAtEveryWorkerMethod) {
  std::string garbage;
  for (uint32_t i = 0, state = 7; i < 512; ++i)
    garbage += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (const auto& [address, method] : std::vector<std::pair<std::string, std::string>>{
           {cluster->prefill().address(), "/baton.v1.PrefillWorker/Prefill"},
           {cluster->decode().address(), "/baton.v1.DecodeWorker/Decode"},
           {cluster->decode().address(), "/baton.v1.KvTransfer/Land"}}) {
    grpc::ClientContext context;
    context.set_deadline(After(std::chrono::seconds(5)));
    std::string response;
    const grpc::Status status = CallRaw(CreateChannel(address), method, &context, garbage, &response);
    EXPECT_FALSE(status.ok()) << method;
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << method;
  }
}

// A model without a chat template, and a worker that serves another model than the router's.
TEST(BadInputOtherModelTest, AChatNeedsATemplate) {
  TinyModel model(1, 1, Architecture::kGemma3);
  Cluster cluster(model.options());
  const Answer answer =
      Stream(cluster.inference(), Request("chat { messages { role: 'user' content: 'hello' } }"));
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kInvalidArgument) << answer.status;
  EXPECT_EQ(GetFieldViolations(answer.status).at(0).field, "chat");
  EXPECT_TRUE(Stream(cluster.inference(), Request("prompt: 'hello' stopping { max_tokens: 3 }")).status.ok());
}

TEST(BadInputOtherModelTest, AWorkerOfAnotherModelIsShownAndNotUsed) {
  TinyModel model(1, 1);
  TinyEngine other_prefill(Architecture::kLlama, 8);
  TinyEngine other_decode(Architecture::kGemma3, 7);
  ClusterOptions options = model.options();
  options.prefill.insert(options.prefill.begin(), &other_prefill.gate());
  options.decode.insert(options.decode.begin(), &other_decode.gate());
  options.start_workers = false;
  Cluster cluster(options);
  for (size_t i : {0, 1}) {
    cluster.prefill(i).Start();
    cluster.decode(i).Start();
  }
  cluster.AwaitState(cluster.prefill(1), v1::WORKER_STATE_SERVING);
  cluster.AwaitState(cluster.decode(1), v1::WORKER_STATE_SERVING);
  for (const WorkerNode* other : {&cluster.prefill(0), &cluster.decode(0)}) {
    cluster.AwaitState(*other, v1::WORKER_STATE_INCOMPATIBLE);
    const std::string reason = cluster.Seen(*other).state_reason();
    EXPECT_NE(reason.find("another model"), std::string::npos) << reason;
    EXPECT_NE(reason.find(other->engine().info().fingerprint), std::string::npos) << reason;
    EXPECT_NE(reason.find(model.served->content_hash()), std::string::npos) << reason;
  }
  for (int i = 0; i < 8; ++i) {
    const Answer answer = Stream(cluster.inference(), Request("prompt: 'hello' stopping { max_tokens: 3 }"));
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.whole.timings().prefill_worker(), cluster.prefill(1).instance_id());
    EXPECT_EQ(answer.whole.timings().decode_worker(), cluster.decode(1).instance_id());
  }
}

}  // namespace
}  // namespace baton
