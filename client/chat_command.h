#ifndef BATON_CLIENT_CHAT_COMMAND_H_
#define BATON_CLIENT_CHAT_COMMAND_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/connection_options.h"
#include "client/request_options.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct ChatOptions {
  ConnectionOptions connection;
  RequestOptions request;
  std::string system;
  bool timings = false;
};

Program ChatProgram();
std::vector<Option> Describe(ChatOptions* options);

// `baton chat`: a conversation, a line of `in` for each thing the user says. Lives as long as `in` does; an
// answer that fails is told to `err` and forgotten, and the conversation goes on.
absl::Status RunChat(const ChatOptions& options, std::FILE* in, std::FILE* out, std::FILE* err);

}  // namespace baton

#endif  // BATON_CLIENT_CHAT_COMMAND_H_
