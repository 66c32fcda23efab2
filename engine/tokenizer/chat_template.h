#ifndef BATON_ENGINE_TOKENIZER_CHAT_TEMPLATE_H_
#define BATON_ENGINE_TOKENIZER_CHAT_TEMPLATE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton {

struct ChatMessage {
  std::string role;
  std::string content;
};

// The chat template that a model file carries: Jinja, interpreted with bounds on steps, output and nesting
// and with access to nothing but the messages. Immutable after Create; any number of threads may render.
class ChatTemplate {
 public:
  struct Context {
    std::string bos_token;
    std::string eos_token;
    bool add_generation_prompt = true;
    absl::Time now;  // for strftime_now
  };

  // INVALID_ARGUMENT with line and reason when `source` is not a template that the interpreter understands.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(std::string_view source);
  virtual ~ChatTemplate() = default;

  // Runs in output order; every character that came out of a message (through any filter) is in a run with
  // allow_control = false. INVALID_ARGUMENT when the template calls raise_exception (its text is in the
  // status), when a limit is passed or when an operation fails.
  virtual absl::StatusOr<std::vector<TextRun>> Render(absl::Span<const ChatMessage> messages,
                                                      const Context& context) const = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_CHAT_TEMPLATE_H_
