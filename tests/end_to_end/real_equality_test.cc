#include <vector>

#include "gtest/gtest.h"
#include "tests/end_to_end/equality.h"
#include "tests/support/model_path.h"

namespace baton {
namespace {

// Every pair of values of two properties occurs in some case.
std::vector<EqualityCase> PairwiseCover() {
  return {{32, 16, 16, "grpc", 1},    {32, 32, 32, "inproc", 2}, {128, 16, 32, "grpc", 2},
          {128, 32, 16, "inproc", 1}, {512, 32, 16, "grpc", 2},  {512, 16, 32, "inproc", 1}};
}

void ExpectEqual(std::string_view file, uint32_t alone_tokens) {
  const std::string path = ModelPath(file);
  if (testing::Test::HasFailure()) return;
  EqualityRequests requests = {.alone_tokens = alone_tokens, .max_tokens = 3};
  for (uint32_t i = 0; i < 32; ++i) requests.crowd_tokens.push_back(i % 8 == 7 ? 40 : 3 + i % 7);
  EqualitySuite suite(path, requests, 64 << 20);
  for (const EqualityCase& c : PairwiseCover()) {
    SCOPED_TRACE(NameOf(c));
    suite.ExpectEqual(c);
  }
}

TEST(RealEqualityTest, SmolLm2) { ExpectEqual(kSmolLm2File, 130); }
// Its window is 512 tokens.
TEST(RealEqualityTest, Gemma3) { ExpectEqual(kGemma3File, 530); }

}  // namespace
}  // namespace baton
