#include "router/served_model.h"

#include <optional>
#include <string_view>

#include "common/status_macros.h"
#include "engine/model_file/model_config.h"

namespace baton {

absl::StatusOr<std::unique_ptr<ServedModel>> ServedModel::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelFile> file, ModelFile::Open(path));
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(*file));
  std::unique_ptr<ServedModel> model(new ServedModel());
  model->name_ = config.name;
  model->context_tokens_ = config.context_tokens;
  model->content_hash_ = file->content_hash();
  ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::Create(*file));
  if (const std::optional<TokenId> bos = model->tokenizer_->bos()) {
    model->bos_text_ = std::string(model->tokenizer_->TokenBytes(*bos));
  }
  const std::optional<uint64_t> eos = file->GetUint("tokenizer.ggml.eos_token_id");
  if (eos && *eos < model->tokenizer_->vocab_size()) {
    model->eos_text_ = std::string(model->tokenizer_->TokenBytes(static_cast<TokenId>(*eos)));
  }
  if (const std::optional<std::string_view> source = file->GetString("tokenizer.chat_template")) {
    ASSIGN_OR_RETURN(model->chat_template_, ChatTemplate::Create(*source));
  }
  return model;
}

ChatTemplate::Context ServedModel::chat_context(absl::Time now) const {
  return {.bos_token = bos_text_, .eos_token = eos_text_, .add_generation_prompt = true, .now = now};
}

}  // namespace baton
