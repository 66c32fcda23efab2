#ifndef BATON_CLIENT_PROMPT_SOURCE_H_
#define BATON_CLIENT_PROMPT_SOURCE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"

namespace baton {

// The requests of a load, used in turn. A plain value; safe to read from any thread.
class PromptSource {
 public:
  // A file of prompts, by its content: each line that begins with "{" is a GenerateRequest in JSON, any other
  // line that is not blank is a prompt. `name` is for error texts, which name the line.
  static absl::StatusOr<PromptSource> FromText(std::string_view text, std::string_view name);
  static absl::StatusOr<PromptSource> FromFile(const std::string& path);

  // Prompts of exactly `prompt_tokens` token ids below `vocab_size`, drawn from `seed`: no two of them begin
  // alike, so that no cache helps. Request i is a function of (seed, i).
  static PromptSource Synthetic(uint32_t prompt_tokens, uint32_t vocab_size, uint64_t seed);

  v1::GenerateRequest Request(uint32_t index) const;

 private:
  PromptSource() = default;

  std::vector<v1::GenerateRequest> requests_;  // Empty: synthetic.
  uint32_t prompt_tokens_ = 0;
  uint32_t vocab_size_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace baton

#endif  // BATON_CLIENT_PROMPT_SOURCE_H_
