#include "engine/tokenizer/nfc.h"

#include <string>

#include "gtest/gtest.h"

namespace baton {
namespace {

// Values from Python's unicodedata.normalize("NFC", ...).
TEST(NfcTest, ComposesAndReorders) {
  EXPECT_EQ(*NormalizeNfc("e\u0301"), "\u00e9");
  EXPECT_EQ(*NormalizeNfc("\u212b"), "\u00c5");
  EXPECT_EQ(*NormalizeNfc("\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(*NormalizeNfc("a\u0315\u0300"), "\u00e0\u0315");
  EXPECT_EQ(*NormalizeNfc("\u0958"), "\u0915\u093c");
  EXPECT_EQ(*NormalizeNfc("\U0002f800"), "\u4e3d");
}

TEST(NfcTest, LeavesWhatIsNormalAlone) {
  EXPECT_EQ(*NormalizeNfc(""), "");
  EXPECT_EQ(*NormalizeNfc("\ufb01 \u00e9 \u2460 plain"), "\ufb01 \u00e9 \u2460 plain");
  EXPECT_EQ(*NormalizeNfc(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

}  // namespace
}  // namespace baton
