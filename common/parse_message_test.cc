#include "common/parse_message.h"

#include "baton/v1/inference.pb.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

// A length-delimited field of the wire format; `number` and the length below 16 and 128.
std::string Field(int number, const std::string& value) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(value.size()) + value;
}

std::string Refusal(const std::string& bytes) {
  v1::GenerateRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ParseMessage, TakesWhatIsWellFormed) {
  v1::GenerateRequest request;
  EXPECT_TRUE(ParseMessage(Field(3, "caf\xC3\xA9"), &request).ok());
  EXPECT_EQ(request.prompt(), "caf\xC3\xA9");
}

TEST(ParseMessage, NamesTheFieldThatIsNotUtf8) {
  EXPECT_EQ(Refusal(Field(3, "\xFF")), "prompt: is not UTF-8");
  EXPECT_EQ(Refusal(Field(7, Field(3, "ok") + Field(3, "\xC3"))), "stopping.stop[1]: is not UTF-8");
  EXPECT_EQ(Refusal(Field(5, Field(1, Field(1, "user") + Field(2, "\x80")))),
            "chat.messages[0].content: is not UTF-8");
}

TEST(ParseMessage, SaysThatTheMessageIsMalformed) {
  EXPECT_EQ(Refusal("\x1A\x7Fshort"), "the request is not a well-formed baton.v1.GenerateRequest");
}

}  // namespace
}  // namespace baton
