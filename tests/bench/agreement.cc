// How near an engine comes to the float32 run of the same weights.
//
//   agreement FORCED LOGITS VOCAB_SIZE
//
// FORCED is a golden file of teacher-forced tokens (tests/golden/README.md); LOGITS, which may be a named
// pipe, holds the engine's float32 logits [tokens][vocabulary] after each of them. Prints one line of JSON.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_reader.h"

namespace baton {
namespace {

int Run(const std::string& forced_path, const std::string& logits_path, size_t vocab_size) {
  const auto forced = golden::ReadForced(forced_path);
  if (!forced.ok()) {
    std::fprintf(stderr, "agreement: %s\n", std::string(forced.status().message()).c_str());
    return 1;
  }
  std::ifstream in(logits_path, std::ios::binary);
  std::vector<float> logits(vocab_size);
  std::vector<double> divergence;
  size_t agreed = 0;
  for (const golden::TopLogits& expected : forced->rows) {
    in.read(reinterpret_cast<char*>(logits.data()), static_cast<std::streamsize>(vocab_size * sizeof(float)));
    if (!in) {
      std::fprintf(stderr, "agreement: %s ends after %zu of %zu rows\n", logits_path.c_str(),
                   divergence.size(), forced->rows.size());
      return 1;
    }
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    agreed += static_cast<size_t>(best) == expected.ids[0] ? 1 : 0;
    divergence.push_back(golden::BucketedKl(expected, logits));
  }
  double sum = 0;
  for (const double kl : divergence) sum += kl;
  const double rows = static_cast<double>(divergence.size());
  std::sort(divergence.begin(), divergence.end());
  const nlohmann::ordered_json json = {{"tokens", divergence.size()},
                                       {"argmax_agreement", static_cast<double>(agreed) / rows},
                                       {"kl_mean", sum / rows},
                                       {"kl_p99", divergence[static_cast<size_t>(0.99 * (rows - 1))]},
                                       {"kl_max", divergence.back()}};
  std::puts(json.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  const long vocab_size = argc == 4 ? std::atol(argv[3]) : 0;
  if (vocab_size <= 0) {
    std::fprintf(stderr, "usage: agreement FORCED LOGITS VOCAB_SIZE\n");
    return 2;
  }
  return baton::Run(argv[1], argv[2], static_cast<size_t>(vocab_size));
}
