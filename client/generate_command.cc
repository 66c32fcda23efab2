#include "client/generate_command.h"

#include <array>

#include "absl/strings/str_join.h"
#include "client/answer.h"
#include "client/describe.h"
#include "client/router_client.h"
#include "client/timings_text.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr uint32_t kMostLogprobs = 100;

std::string ReadAll(std::FILE* in) {
  std::string text;
  std::array<char, 4096> part;
  while (const size_t count = std::fread(part.data(), 1, part.size(), in)) text.append(part.data(), count);
  return text;
}

}  // namespace

Program GenerateProgram() {
  return CommandProgram("generate",
                        "Streams one answer to standard output, and its timings to standard error.\n\n"
                        "  baton generate 'Once upon a time' --max-tokens 64\n"
                        "  baton generate --chat 'Name three rivers.' --temperature 0\n"
                        "  cat letter.txt | baton generate --stop '\\n\\n'\n"
                        "  baton generate 'The sky is' --max-tokens 8 --logprobs 3");
}

std::vector<Option> Describe(GenerateOptions* o) {
  return Joined(
      {Option::Arguments("prompt", &o->prompt, "The prompt; read from standard input when absent."),
       Option::Switch("chat", &o->chat, "The prompt is what a user says, put into the model's own template."),
       Option::Text("system", &o->system, "text", "A system message before it; implies --chat."),
       Option::Count("logprobs", &o->logprobs, {0, kMostLogprobs}, "tokens",
                     "Print a line for each token with its log-probability and so many of the best."),
       Option::Switch("json", &o->json, "Print every message of the stream as a line of JSON."),
       Option::Switch("quiet", &o->quiet, "No timings.")},
      Describe(&o->request), Describe(&o->connection));
}

absl::StatusOr<v1::GenerateRequest> MakeGenerateRequest(const GenerateOptions& options,
                                                        const std::string& input) {
  v1::GenerateRequest request;
  RETURN_IF_ERROR(ApplyTo(options.request, request));
  if (options.logprobs > 0) request.mutable_response()->set_logprobs(options.logprobs);
  if (!options.chat && options.system.empty()) {
    request.set_prompt(input);
    return request;
  }
  if (!options.system.empty()) {
    v1::ChatMessage& message = *request.mutable_chat()->add_messages();
    message.set_role("system");
    message.set_content(options.system);
  }
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content(input);
  return request;
}

absl::Status RunGenerate(const GenerateOptions& options, std::FILE* in, std::FILE* out, std::FILE* err) {
  const std::string input = options.prompt.empty() ? ReadAll(in) : absl::StrJoin(options.prompt, " ");
  ASSIGN_OR_RETURN(const v1::GenerateRequest request, MakeGenerateRequest(options, input));
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterClient> connected, RouterClient::Create(options.connection));
  RouterClient& client = *connected;
  ASSIGN_OR_RETURN(
      const Answer answer,
      StreamAnswer(client, request, options.json ? AnswerStyle::kJson : AnswerStyle::kText, out));
  if (!options.quiet) std::fprintf(err, "\n%s", TimingsText(answer.last).c_str());
  return absl::OkStatus();
}

}  // namespace baton
