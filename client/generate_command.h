#ifndef BATON_CLIENT_GENERATE_COMMAND_H_
#define BATON_CLIENT_GENERATE_COMMAND_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/connection_options.h"
#include "client/request_options.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct GenerateOptions {
  ConnectionOptions connection;
  RequestOptions request;
  std::vector<std::string> prompt;  // Words of the command line; none: standard input.
  bool chat = false;
  std::string system;
  uint32_t logprobs = 0;  // 0: none.
  bool json = false;
  bool quiet = false;
};

Program GenerateProgram();
std::vector<Option> Describe(GenerateOptions* options);

// The request that the options ask for; `input` is the prompt.
absl::StatusOr<v1::GenerateRequest> MakeGenerateRequest(const GenerateOptions& options,
                                                        const std::string& input);

// `baton generate`: streams one answer to `out` and its timings to `err`. Reads `in` when the command line
// has no prompt.
absl::Status RunGenerate(const GenerateOptions& options, std::FILE* in, std::FILE* out, std::FILE* err);

}  // namespace baton

#endif  // BATON_CLIENT_GENERATE_COMMAND_H_
