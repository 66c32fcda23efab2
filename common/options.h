#ifndef BATON_COMMON_OPTIONS_H_
#define BATON_COMMON_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/option.h"

// A program's options, declared once:
//
//   struct DecodeOptions {
//     std::string listen = "127.0.0.1:7620";
//     uint64_t kv_bytes = uint64_t{1} << 30;
//   };
//   std::vector<Option> Describe(DecodeOptions* o) {
//     return {Option::Text("listen", &o->listen, "host:port", "Where to listen."),
//             Option::Bytes("kv-bytes", &o->kv_bytes, {1 << 20, uint64_t{1} << 50}, "Size of the KV pool.")};
//   }
namespace baton {

struct Program {
  std::string name;         // As typed: "decode_service", "baton bench".
  std::string environment;  // Prefix of its variables: "BATON_DECODE". Empty: none are read.
  std::string summary;      // One or more sentences.
};

// Sets options from the command line, or else from the environment (<prefix>_<NAME>), or else leaves the
// default. Returns a text that main prints before it ends with success (--help, --version), or an empty one:
// go on. INVALID_ARGUMENT names option, value and limit, and main ends with a failure.
absl::StatusOr<std::string> ParseOptions(const Program& program, const std::vector<Option>& options, int argc,
                                         const char* const* argv);

// What --help prints.
std::string OptionsHelp(const Program& program, const std::vector<Option>& options);

// A section of Markdown with one table, for docs/.
std::string OptionsMarkdown(const Program& program, const std::vector<Option>& options);

}  // namespace baton

#endif  // BATON_COMMON_OPTIONS_H_
