#ifndef BATON_ROUTER_READ_REQUEST_H_
#define BATON_ROUTER_READ_REQUEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "router/call_spec.h"
#include "router/served_model.h"

namespace baton {

// What a client may ask for at most. One place for all of them.
struct RequestLimits {
  uint32_t max_request_id_bytes = 128;
  uint64_t max_prompt_bytes = uint64_t{8} << 20;  // of its text, before it is tokenized
  uint32_t max_stop_strings = 64;
  uint32_t max_stop_bytes = 1024;  // of one stop string
  uint32_t max_stop_tokens = 256;
  uint32_t max_logit_bias = 1024;  // entries
  uint32_t max_logprobs = 20;
  uint32_t default_max_tokens = 256;
  int32_t max_priority = 10;  // of either sign
};

// Reads and checks a client's call: everything that can be refused without a worker is refused here, with a
// text that names the field, the value and the limit. `context_tokens` is what the workers serve. Fills in
// all of CallSpec but arrival, tokenize and deadline; `seed` is used when the client gives none. Pure; called
// on any thread.
absl::StatusOr<CallSpec> ReadRequest(const v1::GenerateRequest& request, const ServedModel& model,
                                     uint32_t context_tokens, const RequestLimits& limits, uint64_t seed,
                                     absl::Time now);

// INVALID_ARGUMENT naming the first id that is not below `vocab`.
absl::Status CheckTokenIds(std::string_view field, const google::protobuf::RepeatedField<uint32_t>& ids,
                           uint32_t vocab);

// INVALID_ARGUMENT when a prompt, or the messages of a chat together, have more bytes of text than is
// allowed.
absl::Status CheckPromptBytes(std::string_view prompt, const RequestLimits& limits);
absl::Status CheckPromptBytes(const v1::Chat& chat, const RequestLimits& limits);

// NOT_FOUND unless `name` is absent or names the model that is served.
absl::Status CheckModelName(bool has_name, const std::string& name, const ServedModel& model);

// The runs of text that a prompt or a chat stands for; a chat goes through the model's template.
absl::StatusOr<std::vector<TextRun>> RenderChat(const v1::Chat& chat, bool allow_control,
                                                const ServedModel& model, absl::Time now);

}  // namespace baton

#endif  // BATON_ROUTER_READ_REQUEST_H_
