#include "tests/end_to_end/equality.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

// Lengths around blocks, chunks and the sliding window of 32.
EqualityRequests TinyRequests() {
  EqualityRequests requests = {.alone_tokens = 600, .max_tokens = 6};
  for (uint32_t i = 0; i < 32; ++i) requests.crowd_tokens.push_back(1 + i * 5 + (i % 4 == 3 ? 40 : 0));
  return requests;
}

std::vector<EqualityCase> FullProduct() {
  std::vector<EqualityCase> cases;
  for (uint32_t chunk : {32u, 128u, 512u}) {
    for (uint32_t prefill_block : {16u, 32u}) {
      for (uint32_t decode_block : {16u, 32u}) {
        for (const char* transport : {"grpc", "inproc"}) {
          for (uint32_t threads : {1u, 2u})
            cases.push_back({chunk, prefill_block, decode_block, transport, threads});
        }
      }
    }
  }
  return cases;
}

// The suite lives as long as the tests of one architecture.
template <Architecture kArchitecture>
class TinyEqualityTest : public testing::TestWithParam<EqualityCase> {
 protected:
  static void SetUpTestSuite() {
    suite = new EqualitySuite(WriteTinyModel(kArchitecture, 7, testing::TempDir()), TinyRequests(), 16 << 20);
  }
  static void TearDownTestSuite() { delete suite; }

  static inline EqualitySuite* suite = nullptr;
};

using TinyLlama = TinyEqualityTest<Architecture::kLlama>;
using TinyGemma3 = TinyEqualityTest<Architecture::kGemma3>;

TEST_P(TinyLlama, DisaggregatedEqualsAggregated) { suite->ExpectEqual(GetParam()); }
TEST_P(TinyGemma3, DisaggregatedEqualsAggregated) { suite->ExpectEqual(GetParam()); }

INSTANTIATE_TEST_SUITE_P(FullProduct, TinyLlama, testing::ValuesIn(FullProduct()),
                         [](const auto& info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(FullProduct, TinyGemma3, testing::ValuesIn(FullProduct()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace baton
