// Compares with what @huggingface/jinja renders: tests/golden/README.md.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "engine/tokenizer/chat_template.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr char kFolder[] = "tests/golden/chat_templates/";
// Only in message text: shows where it went.
constexpr char kMark[] = "\uE000";

std::string ReadFile(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_FALSE(content.str().empty()) << name;
  return content.str();
}

std::vector<ChatMessage> Messages(const Json& json) {
  std::vector<ChatMessage> messages;
  for (const Json& message : json)
    messages.push_back({.role = message["role"], .content = message["content"]});
  return messages;
}

absl::StatusOr<std::vector<TextRun>> Render(const std::string& source,
                                            const std::vector<ChatMessage>& messages,
                                            bool add_generation_prompt, int64_t now) {
  const absl::StatusOr<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::Create(source);
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render(messages, {.bos_token = "<BOS>",
                                      .eos_token = "<EOS>",
                                      .add_generation_prompt = add_generation_prompt,
                                      .now = absl::FromUnixSeconds(now)});
}

std::string Join(const std::vector<TextRun>& runs) {
  std::string joined;
  for (const TextRun& run : runs) joined += run.text;
  return joined;
}

void ExpectSame(const Json& wanted, const absl::StatusOr<std::vector<TextRun>>& runs,
                const std::string& label) {
  if (wanted.contains("error")) {
    EXPECT_EQ(runs.status().code(), absl::StatusCode::kInvalidArgument) << label;
    return;
  }
  ASSERT_TRUE(runs.ok()) << label << ": " << runs.status();
  EXPECT_EQ(Join(*runs), wanted["output"].get<std::string>()) << label;
}

TEST(ChatTemplateGoldenTest, RendersModelsTemplates) {
  const Json golden = Json::parse(ReadFile("renderings.json"));
  ASSERT_GE(golden["cases"].size(), 250);
  for (const Json& wanted : golden["cases"]) {
    const std::string name = wanted["template"];
    ExpectSame(
        wanted,
        Render(ReadFile(name), Messages(wanted["messages"]), wanted["add_generation_prompt"], golden["now"]),
        name + ", " + wanted["conversation"].get<std::string>());
  }
}

TEST(ChatTemplateGoldenTest, RaisesWhatTheTemplateRaises) {
  const Json golden = Json::parse(ReadFile("renderings.json"));
  int raised = 0;
  for (const Json& wanted : golden["cases"]) {
    const std::string error = wanted.value("error", "");
    if (error.find("roles must alternate") == std::string::npos) continue;
    ++raised;
    const auto runs = Render(ReadFile(wanted["template"]), Messages(wanted["messages"]), true, golden["now"]);
    EXPECT_NE(runs.status().message().find(error.c_str()), std::string::npos) << runs.status();
  }
  EXPECT_GT(raised, 0);
}

TEST(ChatTemplateGoldenTest, RendersExpressions) {
  const Json golden = Json::parse(ReadFile("expressions.json"));
  ASSERT_GE(golden["cases"].size(), 800);
  for (const Json& wanted : golden["cases"]) {
    const std::string source = wanted["template"];
    ExpectSame(wanted, Render(source, Messages(golden["messages"]), true, golden["now"]), source);
  }
}

// Each character of the contents is followed by a mark; no mark may be where control tokens are allowed, and
// what is there may be nothing but the template's own text.
TEST(ChatTemplateGoldenTest, MessageTextIsNeverAllowedControl) {
  const Json golden = Json::parse(ReadFile("renderings.json"));
  int rendered = 0;
  for (const Json& wanted : golden["cases"]) {
    if (wanted.contains("error")) continue;
    const std::string source = ReadFile(wanted["template"]);
    std::vector<ChatMessage> messages = Messages(wanted["messages"]);
    for (ChatMessage& message : messages) {
      std::string marked;
      for (size_t i = 0; i < message.content.size(); ++i) {
        const bool ends = i + 1 == message.content.size() || (message.content[i + 1] & 0xC0) != 0x80;
        marked += message.content[i];
        if (ends) marked += kMark;
      }
      message.content = marked;
    }
    const auto runs = Render(source, messages, true, golden["now"]);
    ASSERT_TRUE(runs.ok()) << runs.status();
    for (const TextRun& run : *runs) {
      if (!run.allow_control) continue;
      EXPECT_EQ(run.text.find(kMark), std::string::npos) << wanted["template"] << ": " << run.text;
      EXPECT_EQ(run.text.find("evil"), std::string::npos) << run.text;
    }
    ++rendered;
  }
  EXPECT_GT(rendered, 200);
}

}  // namespace
}  // namespace baton
