#ifndef BATON_TESTS_GOLDEN_GOLDEN_READER_H_
#define BATON_TESTS_GOLDEN_GOLDEN_READER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/token.h"

// The golden files of this folder as structs; README.md describes the formats. Paths are relative to the root
// of the tree, as tests see it: "tests/golden/tokens_smollm2.jsonl", with that file in the test's `data`.
// NOT_FOUND when a file cannot be opened, INVALID_ARGUMENT when it is not of its format.
namespace baton::golden {

struct TokenCase {
  std::string text;
  bool special;              // control tokens may be spelled in the text
  std::vector<TokenId> ids;  // without BOS
};
absl::StatusOr<std::vector<TokenCase>> ReadTokens(const std::string& path);

struct DequantizeCase {
  uint32_t type;  // GGUF tensor type id
  std::string bytes;
  std::vector<float> values;
};
absl::StatusOr<std::vector<DequantizeCase>> ReadDequantize(const std::string& path);

// The greatest logits of one position, descending, and the log of the sum of exp over all of them.
struct TopLogits {
  float logsumexp;
  std::vector<TokenId> ids;
  std::vector<float> logits;  // one per id
};

struct LogitsRow {
  uint32_t row;  // index of the prompt's token after which they were taken
  uint32_t stride;
  TopLogits top;
  std::vector<float> values;  // the logits of ids 0, stride, 2 * stride ...
};
struct LogitsPrompt {
  std::vector<TokenId> tokens;  // BOS included where the model wants one
  std::vector<LogitsRow> rows;
};
absl::StatusOr<std::vector<LogitsPrompt>> ReadLogits(const std::string& path);

struct Forced {
  std::vector<TokenId> tokens;
  std::vector<TopLogits> rows;  // one per token: the float32 prediction after it
};
absl::StatusOr<Forced> ReadForced(const std::string& path);

// KL(reference || softmax(logits)) in nats over the reference's top tokens and one bucket for all others.
// `logits` holds the whole vocabulary.
double BucketedKl(const TopLogits& reference, absl::Span<const float> logits);

struct GreedyCase {
  std::string text;
  std::vector<TokenId> prompt;
  std::vector<TokenId> tokens;      // llama.cpp's 64
  std::vector<TokenId> f32_first;   // one per token: float32's choice after llama.cpp's tokens so far
  std::vector<TokenId> f32_second;  // and its second choice
  std::vector<float> f32_gap;       // the difference of their logits
};
absl::StatusOr<std::vector<GreedyCase>> ReadGreedy(const std::string& path);

struct SamplingCase {
  std::vector<float> logits;
  std::vector<TokenId> prompt;
  std::vector<TokenId> output;
  std::vector<TokenId> stop_ids;
  // Neutral where the case does not set them.
  double temperature = 1, top_p = 1, min_p = 0;
  double presence_penalty = 0, frequency_penalty = 0, repetition_penalty = 1;
  uint32_t top_k = 0, min_tokens = 0;
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<double> probs;  // one per logit
};
absl::StatusOr<std::vector<SamplingCase>> ReadSampling(const std::string& path);

}  // namespace baton::golden

#endif  // BATON_TESTS_GOLDEN_GOLDEN_READER_H_
