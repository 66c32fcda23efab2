#include "common/log_format.h"

#include <limits>
#include <vector>

#include "common/utf8.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

const std::vector<LogField> kFields = {{"request_id", "r1"},
                                       {"tokens", 7},
                                       {"bytes", uint64_t{18446744073709551615u}},
                                       {"negative", int64_t{-5}},
                                       {"tpot_ms", 12.5},
                                       {"nan", std::numeric_limits<double>::quiet_NaN()},
                                       {"cached", true},
                                       {"wait", absl::Milliseconds(1500)},
                                       {"error", absl::NotFoundError("no model")},
                                       {"empty", ""}};

TEST(LogFormat, Text) {
  EXPECT_EQ(FormatLogText("request_end", kFields),
            "request_end request_id=r1 tokens=7 bytes=18446744073709551615 negative=-5 tpot_ms=12.5 nan=nan "
            "cached=true "
            "wait=1.5s error=\"NOT_FOUND: no model\" empty=\"\"");
}

TEST(LogFormat, JsonReadsBack) {
  const auto json = nlohmann::json::parse("{" + FormatLogJson("request_end", kFields) + "}", nullptr, false);
  EXPECT_EQ(json, nlohmann::json({{"event", "request_end"},
                                  {"request_id", "r1"},
                                  {"tokens", 7},
                                  {"bytes", 18446744073709551615u},
                                  {"negative", -5},
                                  {"tpot_ms", 12.5},
                                  {"nan", "nan"},
                                  {"cached", true},
                                  {"wait", "1.5s"},
                                  {"error", "NOT_FOUND: no model"},
                                  {"empty", ""}}));
}

TEST(LogFormat, AnyBytesStayOneLineAndReadBack) {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  for (const std::string& value :
       {every_byte, std::string("a\nb\r\n\t\"\\\0", 9), std::string("\xf0\x9f\x98\x80 \xed\xa0\x80")}) {
    const std::vector<LogField> fields = {{"value", value}};
    const std::string line = FormatLogJson("e", fields);
    EXPECT_EQ(line.find_first_of("\n\r"), std::string::npos);
    const auto json = nlohmann::json::parse("{" + line + "}", nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << line;
    EXPECT_EQ(json["value"], ReplaceInvalidUtf8(value));
    const std::string text = FormatLogText("e", fields);
    EXPECT_EQ(text.find_first_of("\n\r"), std::string::npos);
    EXPECT_TRUE(IsValidUtf8(text));
  }
}

}  // namespace
}  // namespace baton
