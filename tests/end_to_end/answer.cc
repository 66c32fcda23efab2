#include "tests/end_to_end/answer.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/grpc_status.h"
#include "common/str_cat.h"
#include "google/protobuf/text_format.h"

namespace baton {
namespace {

CallMetadata Copy(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  CallMetadata copy;
  for (const auto& [name, value] : metadata) {
    copy[std::string(name.data(), name.size())] = std::string(value.data(), value.size());
  }
  return copy;
}

v1::GenerateResponse PutTogether(const std::vector<v1::GenerateStreamResponse>& messages) {
  v1::GenerateResponse whole;
  for (const v1::GenerateStreamResponse& message : messages) {
    whole.mutable_text()->append(message.text());
    whole.mutable_tokens()->MergeFrom(message.tokens());
    whole.mutable_logprobs()->MergeFrom(message.logprobs());
    if (message.has_prompt()) *whole.mutable_prompt() = message.prompt();
    if (message.has_seed()) whole.set_seed(message.seed());
    if (message.has_finish()) *whole.mutable_finish() = message.finish();
    if (message.has_usage()) *whole.mutable_usage() = message.usage();
    if (message.has_timings()) *whole.mutable_timings() = message.timings();
  }
  return whole;
}

}  // namespace

AnswerStream::AnswerStream(v1::Inference::Stub& stub, const v1::GenerateRequest& request,
                           std::chrono::milliseconds deadline) {
  context_.set_deadline(std::chrono::system_clock::now() + deadline);
  reader_ = stub.GenerateStream(&context_, request);
}

AnswerStream::~AnswerStream() {
  if (ended_) return;
  Cancel();
  static_cast<void>(Finish());
}

std::optional<v1::GenerateStreamResponse> AnswerStream::Next() {
  v1::GenerateStreamResponse message;
  if (ended_) return std::nullopt;
  if (reader_->Read(&message)) {
    messages_.push_back(message);
    return message;
  }
  ended_ = true;
  status_ = FromGrpcStatus(reader_->Finish());
  return std::nullopt;
}

Answer AnswerStream::Finish() {
  while (Next()) {
  }
  Answer answer;
  answer.status = status_;
  answer.messages = std::move(messages_);
  answer.whole = PutTogether(answer.messages);
  answer.headers = Copy(context_.GetServerInitialMetadata());
  answer.trailers = Copy(context_.GetServerTrailingMetadata());
  return answer;
}

Answer Stream(v1::Inference::Stub& stub, const v1::GenerateRequest& request) {
  return AnswerStream(stub, request).Finish();
}

Answer Generate(v1::Inference::Stub& stub, const v1::GenerateRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  Answer answer;
  answer.status = FromGrpcStatus(stub.Generate(&context, request, &answer.whole));
  answer.headers = Copy(context.GetServerInitialMetadata());
  answer.trailers = Copy(context.GetServerTrailingMetadata());
  return answer;
}

v1::GenerateRequest Request(const std::string& text) {
  v1::GenerateRequest request;
  BATON_CHECK(google::protobuf::TextFormat::ParseFromString(text, &request));
  return request;
}

std::string Decided(const v1::GenerateResponse& answer) {
  v1::GenerateResponse decided = answer;
  decided.clear_request_id();
  decided.clear_model();
  decided.clear_timings();
  return decided.DebugString();
}

std::string Difference(const std::string& decided, const std::string& expected) {
  const auto [at, expected_at] =
      std::mismatch(decided.begin(), decided.end(), expected.begin(), expected.end());
  if (at == decided.end() && expected_at == expected.end()) return "";
  const size_t line = std::count(decided.begin(), at, '\n');
  const auto line_around = [](const std::string& text, size_t offset) {
    const size_t begin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
    return text.substr(begin, text.find('\n', offset) - begin);
  };
  const size_t offset = at - decided.begin();
  return StrCat("line ", line, ": \"", line_around(decided, offset), "\", expected \"",
                line_around(expected, offset), "\"");
}

}  // namespace baton
