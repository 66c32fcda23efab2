#include "client/prompt_source.h"

#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "client/split_mix.h"
#include "common/str_cat.h"
#include "common/string_views.h"
#include "google/protobuf/util/json_util.h"

namespace baton {

absl::StatusOr<PromptSource> PromptSource::FromText(std::string_view text, std::string_view name) {
  PromptSource source;
  int number = 0;
  for (const absl::string_view raw : absl::StrSplit(AbslView(text), '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty()) continue;
    v1::GenerateRequest request;
    if (line.front() == '{') {
      const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(line), &request);
      if (!parsed.ok()) {
        return absl::InvalidArgumentError(StrCat(
            name, " line ", number,
            " is no GenerateRequest: ", std::string_view(parsed.message().data(), parsed.message().size())));
      }
    } else {
      request.set_prompt(std::string(line));
    }
    source.requests_.push_back(std::move(request));
  }
  if (source.requests_.empty()) return absl::InvalidArgumentError(StrCat(name, " holds no prompt"));
  return source;
}

absl::StatusOr<PromptSource> PromptSource::FromFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text) return absl::NotFoundError(StrCat("cannot read the prompts in ", path));
  return FromText(text.str(), path);
}

PromptSource PromptSource::Synthetic(uint32_t prompt_tokens, uint32_t vocab_size, uint64_t seed) {
  PromptSource source;
  source.prompt_tokens_ = prompt_tokens;
  source.vocab_size_ = vocab_size;
  source.seed_ = seed;
  return source;
}

v1::GenerateRequest PromptSource::Request(uint32_t index) const {
  if (!requests_.empty()) return requests_[index % requests_.size()];
  v1::GenerateRequest request;
  uint64_t state = seed_;
  state = SplitMix(state) + index;  // A stream of its own for each index.
  for (uint32_t i = 0; i < prompt_tokens_; ++i) {
    request.mutable_tokens()->add_ids(static_cast<uint32_t>(SplitMix(state) % vocab_size_));
  }
  return request;
}

}  // namespace baton
