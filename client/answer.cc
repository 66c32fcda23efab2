#include "client/answer.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "common/status_macros.h"
#include "google/protobuf/util/json_util.h"

namespace baton {
namespace {

std::string JsonLine(const v1::GenerateStreamResponse& message) {
  std::string line;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(message, &line, options);
  return status.ok() ? line + "\n" : "{}\n";
}

std::string Entry(const v1::TokenLogprob& entry) {
  return absl::StrFormat("\"%s\" %.4f", absl::Utf8SafeCEscape(entry.text()), entry.logprob());
}

}  // namespace

std::string LogprobsText(const v1::GenerateStreamResponse& message) {
  std::string text;
  for (const v1::PositionLogprobs& position : message.logprobs()) {
    text += Entry(position.token());
    for (int i = 0; i < position.top_size(); ++i)
      text += (i == 0 ? "   best: " : ", ") + Entry(position.top(i));
    text += "\n";
  }
  return text;
}

absl::StatusOr<Answer> StreamAnswer(RouterClient& client, const v1::GenerateRequest& request,
                                    AnswerStyle style, std::FILE* out) {
  Answer answer;
  const bool with_logprobs = request.response().has_logprobs();
  const absl::Status status = client.GenerateStream(request, [&](const v1::GenerateStreamResponse& message) {
    answer.text += message.text();
    if (message.has_finish() || message.has_timings()) answer.last = message;
    std::string piece = message.text();
    if (style == AnswerStyle::kJson) piece = JsonLine(message);
    if (style == AnswerStyle::kText && with_logprobs) piece = LogprobsText(message);
    std::fwrite(piece.data(), 1, piece.size(), out);
    std::fflush(out);
  });
  if (style == AnswerStyle::kText && !with_logprobs && !answer.text.empty() && answer.text.back() != '\n') {
    std::fputc('\n', out);
  }
  std::fflush(out);
  RETURN_IF_ERROR(status);
  return answer;
}

}  // namespace baton
