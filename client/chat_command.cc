#include "client/chat_command.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/strip.h"
#include "client/answer.h"
#include "client/describe.h"
#include "client/router_client.h"
#include "client/timings_text.h"
#include "common/status_macros.h"

namespace baton {
namespace {

void AddMessage(v1::Chat& chat, const char* role, const std::string& content) {
  v1::ChatMessage& message = *chat.add_messages();
  message.set_role(role);
  message.set_content(content);
}

v1::Chat NewConversation(const ChatOptions& options) {
  v1::Chat chat;
  if (!options.system.empty()) AddMessage(chat, "system", options.system);
  return chat;
}

// One line without its end; false at the end of the input.
bool ReadLine(std::FILE* in, std::string* line) {
  char* buffer = nullptr;
  size_t size = 0;
  const ssize_t length = getline(&buffer, &size, in);
  if (length >= 0) *line = std::string(absl::StripSuffix(absl::string_view(buffer, length), "\n"));
  std::free(buffer);
  return length >= 0;
}

}  // namespace

Program ChatProgram() {
  return CommandProgram("chat",
                        "A conversation in the terminal. Ctrl-D or /quit ends it, /new begins another.\n\n"
                        "  baton chat\n"
                        "  baton chat --system 'Answer in one sentence.' --temperature 0.6");
}

std::vector<Option> Describe(ChatOptions* o) {
  return Joined(
      {Option::Text("system", &o->system, "text", "What the model is told before the conversation."),
       Option::Switch("timings", &o->timings, "Print TTFT, TPOT and their parts after each answer.")},
      Describe(&o->request), Describe(&o->connection));
}

absl::Status RunChat(const ChatOptions& options, std::FILE* in, std::FILE* out, std::FILE* err) {
  v1::GenerateRequest request;
  RETURN_IF_ERROR(ApplyTo(options.request, request));
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterClient> connected, RouterClient::Create(options.connection));
  RouterClient& client = *connected;
  v1::Chat chat = NewConversation(options);
  const bool prompts = isatty(fileno(in)) == 1;
  std::string line;
  while (true) {
    if (prompts) std::fputs("> ", out);
    std::fflush(out);
    if (!ReadLine(in, &line) || line == "/quit") return absl::OkStatus();
    if (line == "/new") chat = NewConversation(options);
    if (line.empty() || line == "/new") continue;
    AddMessage(chat, "user", line);
    *request.mutable_chat() = chat;
    const absl::StatusOr<Answer> answer = StreamAnswer(client, request, AnswerStyle::kText, out);
    if (!answer.ok()) {
      std::fprintf(err, "%s\n", answer.status().ToString().c_str());
      chat.mutable_messages()->RemoveLast();
      continue;
    }
    AddMessage(chat, "assistant", answer->text);
    if (options.timings) std::fprintf(err, "%s", TimingsText(answer->last).c_str());
  }
}

}  // namespace baton
