#ifndef BATON_TESTS_END_TO_END_ANSWER_H_
#define BATON_TESTS_END_TO_END_ANSWER_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "baton/v1/inference.grpc.pb.h"

// A blocking client of the public API, for tests.
namespace baton {

using CallMetadata = std::map<std::string, std::string>;

// How a call came out.
struct Answer {
  absl::Status status;
  v1::GenerateResponse whole;                        // of a stream: its deltas put together
  std::vector<v1::GenerateStreamResponse> messages;  // of a stream
  CallMetadata headers;
  CallMetadata trailers;
};

// One open GenerateStream. Ends it when destroyed.
class AnswerStream {
 public:
  AnswerStream(v1::Inference::Stub& stub, const v1::GenerateRequest& request,
               std::chrono::milliseconds deadline = std::chrono::seconds(30));
  ~AnswerStream();

  // The next message; absent at the end, when status() says why.
  std::optional<v1::GenerateStreamResponse> Next();
  const absl::Status& status() const { return status_; }
  void Cancel() { context_.TryCancel(); }
  // Reads what is left. Called once.
  Answer Finish();

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateStreamResponse>> reader_;
  std::vector<v1::GenerateStreamResponse> messages_;
  absl::Status status_;  // OK while it runs
  bool ended_ = false;
};

Answer Stream(v1::Inference::Stub& stub, const v1::GenerateRequest& request);
Answer Generate(v1::Inference::Stub& stub, const v1::GenerateRequest& request);

// A request in protobuf's text format.
v1::GenerateRequest Request(const std::string& text);

// All that the model decided, as text: tokens, text, log-probabilities to the last bit, finish, usage and
// seed.
std::string Decided(const v1::GenerateResponse& answer);
// The first line in which two such texts differ; empty when none does.
std::string Difference(const std::string& decided, const std::string& expected);

}  // namespace baton

#endif  // BATON_TESTS_END_TO_END_ANSWER_H_
