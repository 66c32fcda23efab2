#include "client/prompt_source.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace baton {
namespace {

TEST(PromptSource, ReadsTextAndJsonLines) {
  const auto source = PromptSource::FromText(
      "Once upon a time\r\n"
      "\n"
      R"({"chat": {"messages": [{"role": "user", "content": "Hi"}]}, "stopping": {"max_tokens": 5}})"
      "\n",
      "file");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->Request(0).prompt(), "Once upon a time");
  EXPECT_EQ(source->Request(1).chat().messages(0).content(), "Hi");
  EXPECT_EQ(source->Request(1).stopping().max_tokens(), 5u);
  EXPECT_EQ(source->Request(2).prompt(), "Once upon a time") << "used in turn";
}

TEST(PromptSource, NamesTheLineThatIsWrong) {
  const auto source = PromptSource::FromText("good\n{\"promt\": \"typo\"}\n", "prompts.jsonl");
  ASSERT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(source.status().message().find("prompts.jsonl line 2"), absl::string_view::npos)
      << source.status();
  EXPECT_EQ(PromptSource::FromText("\n \n", "f").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PromptSource::FromFile("/nonexistent").status().code(), absl::StatusCode::kNotFound);
}

TEST(PromptSource, SyntheticPromptsHaveTheirLengthAndDiffer) {
  const PromptSource source = PromptSource::Synthetic(17, 100, 3);
  std::set<std::string> seen;
  for (uint32_t i = 0; i < 50; ++i) {
    const v1::GenerateRequest request = source.Request(i);
    ASSERT_EQ(request.tokens().ids_size(), 17);
    for (const uint32_t id : request.tokens().ids()) EXPECT_LT(id, 100u);
    EXPECT_TRUE(seen.insert(request.SerializeAsString()).second);
  }
  EXPECT_EQ(source.Request(4).SerializeAsString(),
            PromptSource::Synthetic(17, 100, 3).Request(4).SerializeAsString());
}

}  // namespace
}  // namespace baton
