#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/bench_command.h"
#include "client/certs_command.h"
#include "client/chat_command.h"
#include "client/generate_command.h"
#include "client/status_command.h"
#include "client/top_command.h"
#include "client/up_command.h"
#include "common/options.h"
#include "common/version.h"

// baton, the command-line tool: picks a command, parses its options, runs it. Exit status 0: well; 1: the
// command failed; 2: the command line is wrong.
namespace baton {
namespace {

constexpr char kUsage[] =
    "Usage: baton COMMAND [options]\n\n"
    "Large language models as two services, prefill and decode, behind one router.\n\n"
    "  up         start router, prefill and decode workers on this machine\n"
    "  generate   stream one answer\n"
    "  chat       a conversation in the terminal\n"
    "  status     the router, its workers, their load and KV blocks\n"
    "  top        the same, live\n"
    "  bench      send load; TTFT, TPOT, tokens per second, goodput\n"
    "  certs      make certificates for development\n\n"
    "  baton up                                in one terminal, and in another:\n"
    "  baton generate 'Once upon a time'\n"
    "  baton bench --streams 8\n\n"
    "baton COMMAND --help says more, with examples. baton --version prints the version.\n";

// Parses the options of one command into `options` and runs it.
template <typename Options, typename Run>
int RunCommand(const Program& program, int argc, const char* const* argv, const Run& run) {
  Options options;
  const absl::StatusOr<std::string> text = ParseOptions(program, Describe(&options), argc, argv);
  if (!text.ok()) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), std::string(text.status().message()).c_str());
    return 2;
  }
  if (!text->empty()) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  const absl::Status status = run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", program.name.c_str(),
               status.ToString(absl::StatusToStringMode::kDefault).c_str());
  return 1;
}

int Main(int argc, const char* const* argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "--version") {
    std::printf("baton %s\n", std::string(kVersion).c_str());
    return 0;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  --argc;
  ++argv;
  if (command == "up") {
    return RunCommand<UpOptions>(UpProgram(), argc, argv, [](const auto& o) { return RunUp(o, stdout); });
  }
  if (command == "generate") {
    return RunCommand<GenerateOptions>(GenerateProgram(), argc, argv,
                                       [](const auto& o) { return RunGenerate(o, stdin, stdout, stderr); });
  }
  if (command == "chat") {
    return RunCommand<ChatOptions>(ChatProgram(), argc, argv,
                                   [](const auto& o) { return RunChat(o, stdin, stdout, stderr); });
  }
  if (command == "status") {
    return RunCommand<StatusOptions>(StatusProgram(), argc, argv,
                                     [](const auto& o) { return RunStatus(o, stdout); });
  }
  if (command == "top") {
    return RunCommand<TopOptions>(TopProgram(), argc, argv, [](const auto& o) { return RunTop(o); });
  }
  if (command == "bench") {
    return RunCommand<BenchOptions>(BenchProgram(), argc, argv,
                                    [](const auto& o) { return RunBench(o, stdout, stderr); });
  }
  if (command == "certs") {
    return RunCommand<CertsOptions>(CertsProgram(), argc, argv,
                                    [](const auto& o) { return RunCerts(o, stdout); });
  }
  std::fprintf(stderr, "%s%s\n\n%s", command.empty() ? "no command" : "there is no command ",
               std::string(command).c_str(), kUsage);
  return 2;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) { return baton::Main(argc, argv); }
