#ifndef BATON_CLIENT_ANSWER_H_
#define BATON_CLIENT_ANSWER_H_

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"
#include "client/router_client.h"

namespace baton {

// How an answer is written while it streams.
enum class AnswerStyle {
  kText,  // The text alone.
  kJson,  // Every message as one line of JSON.
};

struct Answer {
  std::string text;
  v1::GenerateStreamResponse last;  // The last message: finish, usage, timings.
};

// Sends the request and writes the answer to `out` as it comes. The text ends with a line break.
absl::StatusOr<Answer> StreamAnswer(RouterClient& client, const v1::GenerateRequest& request,
                                    AnswerStyle style, std::FILE* out);

// One line for each position that carries log-probabilities: the token's text, its log-probability, the best
// others.
std::string LogprobsText(const v1::GenerateStreamResponse& message);

}  // namespace baton

#endif  // BATON_CLIENT_ANSWER_H_
