#ifndef BATON_ROUTER_SERVED_MODEL_H_
#define BATON_ROUTER_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/model_file/model_file.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace baton {

// What the router itself needs of the model: its tokenizer and chat template, its name, its limits, and the
// identity by which workers are told apart. The weights are mapped and never read, but once for the hash.
// Immutable; any thread may read it.
class ServedModel {
 public:
  static absl::StatusOr<std::unique_ptr<ServedModel>> Load(const std::string& path);

  const std::string& name() const { return name_; }
  uint32_t context_tokens() const { return context_tokens_; }
  const std::string& content_hash() const { return content_hash_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // Null when the file carries none.
  const ChatTemplate* chat_template() const { return chat_template_.get(); }
  // The bytes of BOS and EOS as templates know them, empty when the model has none.
  ChatTemplate::Context chat_context(absl::Time now) const;

 private:
  ServedModel() = default;

  std::string name_;
  uint32_t context_tokens_ = 0;
  std::string content_hash_;
  std::string bos_text_;
  std::string eos_text_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
};

}  // namespace baton

#endif  // BATON_ROUTER_SERVED_MODEL_H_
