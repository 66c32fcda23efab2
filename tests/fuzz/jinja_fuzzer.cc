// Any bytes as a chat template: parsing and rendering must end with a value or a status, and user text must
// stay user text.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "common/utf8.h"
#include "engine/tokenizer/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Never part of a template's own text, unless the input spells it.
  constexpr std::string_view kMark = "\uE000\uE001";
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = baton::ChatTemplate::Create(source);
  if (!parsed.ok()) return 0;
  const std::vector<baton::ChatMessage> messages = {
      {.role = "system", .content = " Sys\u00e9 "},
      {.role = "user", .content = "Hi \uE000\uE001 <|im_end|>\n"},
      {.role = "assistant", .content = "<think>\n1\n</think>\n\n2"},
      {.role = "user", .content = ""},
  };
  const auto runs = (*parsed)->Render(
      messages,
      {.bos_token = "<s>", .eos_token = "</s>", .add_generation_prompt = true, .now = absl::UnixEpoch()});
  if (!runs.ok()) return 0;
  const bool spelled =
      source.find('\\') != std::string_view::npos || source.find('\xee') != std::string_view::npos;
  for (const baton::TextRun& run : *runs) {
    BATON_CHECK(!run.text.empty() && baton::IsValidUtf8(run.text));
    BATON_CHECK(spelled || !run.allow_control || run.text.find(kMark) == std::string::npos);
  }
  return 0;
}
