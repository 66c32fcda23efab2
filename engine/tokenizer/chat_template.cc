#include "engine/tokenizer/chat_template.h"

#include <utility>

#include "common/status_macros.h"
#include "common/utf8.h"
#include "engine/tokenizer/jinja/ast.h"
#include "engine/tokenizer/jinja/error.h"
#include "engine/tokenizer/jinja/evaluator.h"
#include "engine/tokenizer/jinja/parser.h"

namespace baton {
namespace {

using jinja::Error;
using jinja::Origin;
using jinja::Text;
using jinja::Value;

class JinjaChatTemplate : public ChatTemplate {
 public:
  explicit JinjaChatTemplate(jinja::Block block) : block_(std::move(block)) {}

  absl::StatusOr<std::vector<TextRun>> Render(absl::Span<const ChatMessage> messages,
                                              const Context& context) const override {
    if (!IsValidUtf8(context.bos_token) || !IsValidUtf8(context.eos_token)) {
      return Error("bos_token or eos_token is not UTF-8");
    }
    jinja::Evaluator evaluator(context.now);
    ASSIGN_OR_RETURN(Value message_list, MessageList(messages, evaluator.budget()));
    ASSIGN_OR_RETURN(
        const Text text,
        evaluator.Run(block_, {{"messages", std::move(message_list)},
                               {"add_generation_prompt", Value::Boolean(context.add_generation_prompt)},
                               {"bos_token", Value::Literal(context.bos_token)},
                               {"eos_token", Value::Literal(context.eos_token)}}));
    return Runs(text);
  }

 private:
  // Role and content are a client's text alike.
  static absl::StatusOr<Value> MessageList(absl::Span<const ChatMessage> messages, jinja::Budget* budget) {
    const Value role_key = Value::Literal("role");
    const Value content_key = Value::Literal("content");
    std::vector<Value> list;
    for (size_t i = 0; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (!IsValidUtf8(message.role)) return Error("messages[", i, "].role is not UTF-8");
      if (!IsValidUtf8(message.content)) return Error("messages[", i, "].content is not UTF-8");
      ASSIGN_OR_RETURN(Value role, MakeString(Text(message.role, Origin::kMessage), budget));
      ASSIGN_OR_RETURN(Value content, MakeString(Text(message.content, Origin::kMessage), budget));
      ASSIGN_OR_RETURN(
          Value dict,
          jinja::MakeDict({{role_key, std::move(role)}, {content_key, std::move(content)}}, budget));
      list.push_back(std::move(dict));
    }
    return jinja::MakeList(std::move(list), budget);
  }

  static std::vector<TextRun> Runs(const Text& text) {
    std::vector<TextRun> runs;
    size_t begin = 0;
    for (const Text::Segment& segment : text.segments()) {
      runs.push_back({.text = std::string(text.bytes().substr(begin, segment.end - begin)),
                      .allow_control = segment.origin == Origin::kTemplate});
      begin = segment.end;
    }
    return runs;
  }

  const jinja::Block block_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(std::string_view source) {
  ASSIGN_OR_RETURN(jinja::Block block, jinja::Parse(source));
  return std::make_unique<JinjaChatTemplate>(std::move(block));
}

}  // namespace baton
