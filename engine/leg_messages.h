#ifndef BATON_ENGINE_LEG_MESSAGES_H_
#define BATON_ENGINE_LEG_MESSAGES_H_

#include "absl/status/statusor.h"
#include "baton/v1/leg.pb.h"
#include "engine/engine.h"
#include "engine/sequence.h"

namespace baton {

// What both legs say about tokens, between the engine's types and the wire's.

// INVALID_ARGUMENT names the field, the value and the limit: an empty prompt, ids outside the vocabulary,
// prompt + max_tokens over the context, output as long as max_tokens, sampling out of range.
absl::StatusOr<SequenceSpec> ReadTokenRequest(const v1::TokenRequest& request, const EngineInfo& info);

v1::LegToken WriteToken(const SampledToken& token, bool with_logprob);

}  // namespace baton

#endif  // BATON_ENGINE_LEG_MESSAGES_H_
