#include "router/inference_service.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/call_deadline.h"
#include "common/error_details.h"
#include "common/parsed_method.h"
#include "common/request_id.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "common/utf8.h"
#include "engine/tokenizer/detokenizer.h"
#include "router/answer_streams.h"

namespace baton {

InferenceService::InferenceService(Options options, const Parts& parts)
    : options_(std::move(options)), parts_(parts), quota_(options_.max_streams_per_client) {
  using grpc::ByteBuffer;
  using grpc::CallbackServerContext;
  using grpc::internal::CallbackServerStreamingHandler;
  using grpc::internal::CallbackUnaryHandler;
  // In the order of the methods in the .proto.
  MarkMethodCallback(
      0, new CallbackUnaryHandler<ByteBuffer, v1::GenerateResponse>(
             [this](CallbackServerContext* context, const ByteBuffer* request,
                    v1::GenerateResponse* response) { return Generate(context, request, response); }));
  MarkMethodCallback(1, new CallbackServerStreamingHandler<ByteBuffer, v1::GenerateStreamResponse>(
                            [this](CallbackServerContext* context, const ByteBuffer* request) {
                              return GenerateStream(context, request);
                            }));
  MarkMethodCallback(2, ParsedMethod<v1::TokenizeRequest, v1::TokenizeResponse>(
                            std::bind_front(&InferenceService::Tokenize, this)));
  MarkMethodCallback(3, ParsedMethod<v1::DetokenizeRequest, v1::DetokenizeResponse>(
                            std::bind_front(&InferenceService::Detokenize, this)));
}

absl::StatusOr<InferenceService::Admitted> InferenceService::Admit(grpc::CallbackServerContext* context,
                                                                   const grpc::ByteBuffer& bytes) {
  const absl::Time arrival = parts_.clock->Now();
  ASSIGN_OR_RETURN(std::shared_ptr<ClientQuota::Slot> slot,
                   quota_.Take(ClientKey(parts_.credentials.get(), *context)));
  v1::GenerateRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, &request));
  if (!request.has_request_id()) request.set_request_id(NewRequestId(*parts_.random));
  ASSIGN_OR_RETURN(DrainState::Work work, parts_.drain->Admit());
  const RouterLoop::Board board = parts_.loop->board();
  const uint32_t context_tokens =
      board.can_serve ? board.model.context_tokens() : parts_.model->context_tokens();
  ASSIGN_OR_RETURN(CallSpec spec, ReadRequest(request, *parts_.model, context_tokens, options_.limits,
                                              parts_.random->Next(), absl::Now()));
  context->AddInitialMetadata("x-request-id", spec.request_id);
  spec.tenant = TenantOf(parts_.credentials.get(), *context);
  spec.arrival = arrival;
  spec.tokenize = parts_.clock->Now() - arrival;
  spec.deadline = CallDeadline(*context, *parts_.clock, options_.longest_request);
  return Admitted{std::move(spec), std::move(work), std::move(slot)};
}

grpc::ServerUnaryReactor* InferenceService::Generate(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     v1::GenerateResponse* response) {
  absl::StatusOr<Admitted> admitted = Admit(context, *request);
  if (!admitted.ok()) return FinishUnary(context, admitted.status());
  response->set_request_id(admitted->spec.request_id);
  response->set_model(parts_.model->name());
  const CallId call = parts_.loop->NewCall();
  auto* answer = new WholeAnswer(
      context, response, [loop = parts_.loop, call, slot = admitted->slot] { loop->ClientGone(call); });
  parts_.loop->Start(call, std::move(admitted->spec), answer->MakeStream(std::move(admitted->work)));
  return answer;
}

grpc::ServerWriteReactor<v1::GenerateStreamResponse>* InferenceService::GenerateStream(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  absl::StatusOr<Admitted> admitted = Admit(context, *request);
  const CallId call = parts_.loop->NewCall();
  const std::shared_ptr<StreamedAnswer> answer =
      StreamedAnswer::Create(context, options_.max_unread_messages,
                             [loop = parts_.loop, call, slot = admitted.ok() ? admitted->slot : nullptr] {
                               loop->ClientGone(call);
                             });
  grpc::ServerWriteReactor<v1::GenerateStreamResponse>* reactor = answer->reactor();
  if (!admitted.ok()) {
    answer->End(admitted.status(), {});
    return reactor;
  }
  answer->Hold(std::move(admitted->work));
  parts_.loop->Start(call, std::move(admitted->spec), answer);
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(grpc::CallbackServerContext* context,
                                                     const v1::TokenizeRequest& request,
                                                     v1::TokenizeResponse* response) {
  const auto tokenize = [&]() -> absl::Status {
    const ServedModel& model = *parts_.model;
    RETURN_IF_ERROR(CheckModelName(request.has_model(), request.model(), model));
    std::vector<TextRun> runs;
    bool add_special = !request.has_add_special() || request.add_special();
    if (request.has_chat()) {
      RETURN_IF_ERROR(CheckPromptBytes(request.chat(), options_.limits));
      ASSIGN_OR_RETURN(runs, RenderChat(request.chat(), request.parse_control_tokens(), model, absl::Now()));
      add_special = false;  // a template writes its own
      for (const TextRun& run : runs) response->mutable_rendered()->append(run.text);
    } else if (request.has_prompt()) {
      RETURN_IF_ERROR(CheckPromptBytes(request.prompt(), options_.limits));
      runs.push_back({request.prompt(), request.parse_control_tokens()});
    } else {
      return InvalidField("prompt", "is absent: one of prompt and chat must be given");
    }
    ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, model.tokenizer().Encode(runs, add_special));
    response->mutable_tokens()->Assign(tokens.begin(), tokens.end());
    for (TokenId token : tokens) {
      response->add_texts(ReplaceInvalidUtf8(model.tokenizer().TokenBytes(token)));
    }
    return absl::OkStatus();
  };
  return FinishUnary(context, tokenize());
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(grpc::CallbackServerContext* context,
                                                       const v1::DetokenizeRequest& request,
                                                       v1::DetokenizeResponse* response) {
  const auto detokenize = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckModelName(request.has_model(), request.model(), *parts_.model));
    const Tokenizer& tokenizer = parts_.model->tokenizer();
    if (static_cast<uint64_t>(request.tokens_size()) > options_.limits.max_prompt_bytes) {
      return InvalidField("tokens", StrCat(request.tokens_size(), " tokens, at most ",
                                           options_.limits.max_prompt_bytes, " are allowed"));
    }
    RETURN_IF_ERROR(CheckTokenIds("tokens", request.tokens(), tokenizer.vocab_size()));
    Detokenizer text(&tokenizer, !request.has_skip_special_tokens() || request.skip_special_tokens());
    for (uint32_t token : request.tokens()) response->mutable_text()->append(text.Push(token));
    response->mutable_text()->append(text.Finish());
    return absl::OkStatus();
  };
  return FinishUnary(context, detokenize());
}

}  // namespace baton
