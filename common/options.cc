#include "common/options.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/string_views.h"
#include "common/version.h"

namespace baton {
namespace {

// Empty where nothing is read from the environment.
std::string VariableName(const Program& program, const Option& option) {
  if (program.environment.empty() || option.kind() == Option::Kind::kArguments) return "";
  return absl::StrCat(program.environment, "_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(option.name(), {{"-", "_"}})));
}

std::string FlagName(const Option& option) {
  return option.kind() == Option::Kind::kArguments ? option.name() : absl::StrCat("--", option.name());
}

CLI::Option* Declare(const Program& program, const Option& option, CLI::App* app) {
  CLI::Option* declared = nullptr;
  switch (option.kind()) {
    case Option::Kind::kSwitch:
      declared = app->add_flag(FlagName(option));
      break;
    case Option::Kind::kValue:
      // One text for each flag; the flag may be repeated.
      declared = app->add_option(FlagName(option))
                     ->expected(1)
                     ->allow_extra_args(false)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      break;
    case Option::Kind::kArguments:
      declared = app->add_option(FlagName(option))
                     ->expected(-1)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      break;
  }
  const std::string variable = VariableName(program, option);
  return variable.empty() ? declared : declared->envname(variable);
}

// The command line, last word first, as the parser wants it. "--name=" is parted into the flag and an empty
// value: the parser itself would take the next word for it.
std::vector<std::string> Words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    const std::string word = argv[i];
    const bool is_empty_value = word.size() > 3 && word.compare(0, 2, "--") == 0 && word.back() == '=' &&
                                word.find('=') == word.size() - 1;
    if (is_empty_value) words.emplace_back();
    words.push_back(is_empty_value ? word.substr(0, word.size() - 1) : word);
  }
  return words;
}

absl::Status Named(const Program& program, const Option& option, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string variable = VariableName(program, option);
  return absl::InvalidArgumentError(
      absl::StrCat(FlagName(option), variable.empty() ? "" : " or ", variable, ": ", status.message()));
}

std::string Sentence(const Program& program, const Option& option) {
  std::vector<std::string> facts;
  if (!option.default_text().empty()) facts.push_back(absl::StrCat("default ", option.default_text()));
  if (!option.limits().empty()) facts.push_back(option.limits());
  if (std::string variable = VariableName(program, option); !variable.empty())
    facts.push_back(std::move(variable));
  return facts.empty() ? option.help() : absl::StrCat(option.help(), " [", absl::StrJoin(facts, "; "), "]");
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}}); }

std::string Code(const std::string& text) { return text.empty() ? "" : absl::StrCat("`", Cell(text), "`"); }

}  // namespace

absl::StatusOr<std::string> ParseOptions(const Program& program, const std::vector<Option>& options, int argc,
                                         const char* const* argv) {
  std::vector<CLI::Option*> declared;
  // CLI11 reports what it does not like by throwing.
  try {
    CLI::App app;
    app.set_help_flag();
    const CLI::Option* const help = app.add_flag("-h,--help");
    const CLI::Option* const version = app.add_flag("--version");
    for (const Option& option : options) declared.push_back(Declare(program, option, &app));
    app.parse(Words(argc, argv));
    if (help->count() > 0) return OptionsHelp(program, options);
    if (version->count() > 0) return absl::StrCat(program.name, " (baton) ", AbslView(kVersion), "\n");
    for (size_t i = 0; i < options.size(); ++i) {
      if (declared[i]->count() == 0) continue;
      const absl::Status status = Named(program, options[i], options[i].Set(declared[i]->results()));
      if (!status.ok()) return status;
    }
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), "; see ", program.name, " --help"));
  }
  return "";
}

std::string OptionsHelp(const Program& program, const std::vector<Option>& options) {
  std::string usage = absl::StrCat("Usage: ", program.name, " [options]");
  std::string list;
  for (const Option& option : options) {
    if (option.kind() == Option::Kind::kArguments) absl::StrAppend(&usage, " ", option.name(), "...");
    const std::string word = option.unit().empty() ? "value" : option.unit();
    absl::StrAppend(&list, "  ", FlagName(option),
                    option.kind() == Option::Kind::kValue ? " <" + word + ">" : "", "\n      ",
                    Sentence(program, option), "\n");
  }
  return absl::StrCat(usage, "\n\n", program.summary, "\n\n", list,
                      "  --help\n      Prints this.\n  --version\n      Prints the version.\n");
}

std::string OptionsMarkdown(const Program& program, const std::vector<Option>& options) {
  std::string out = absl::StrCat("## ", program.name, "\n\n", program.summary,
                                 "\n\n| Option | Unit | Default | Values | Environment | Meaning |\n",
                                 "|---|---|---|---|---|---|\n");
  for (const Option& option : options) {
    absl::StrAppend(&out, "| ", Code(FlagName(option)), " | ", Cell(option.unit()), " | ",
                    Code(option.default_text()), " | ", Cell(option.limits()), " | ",
                    Code(VariableName(program, option)), " | ", Cell(option.help()), " |\n");
  }
  return out;
}

}  // namespace baton
