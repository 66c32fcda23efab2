#ifndef BATON_TESTS_SUPPORT_LEG_REQUESTS_H_
#define BATON_TESTS_SUPPORT_LEG_REQUESTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "baton/v1/decode.pb.h"
#include "baton/v1/prefill.pb.h"
#include "engine/token.h"

// What a router sends to workers, for tests that play it.
namespace baton {

// Lower-case letters, different for each salt, as ids of a vocabulary of bytes.
inline std::vector<TokenId> LetterPrompt(uint32_t tokens, uint32_t salt = 0) {
  std::vector<TokenId> prompt;
  for (uint32_t i = 0; i < tokens; ++i) prompt.push_back('a' + (i * 7 + i / 5 + salt * 11) % 26);
  return prompt;
}

// The `number`-th transfer of a test.
inline v1::Attempt MakeAttempt(uint8_t number) {
  v1::Attempt attempt;
  attempt.set_request_id("request-" + std::to_string(number));
  attempt.set_transfer_id(std::string(15, 'x') + static_cast<char>(number));
  attempt.set_number(0);
  return attempt;
}

inline v1::TokenRequest MakeTokenRequest(const std::vector<TokenId>& prompt, uint32_t max_tokens) {
  v1::TokenRequest request;
  request.mutable_prompt()->Assign(prompt.begin(), prompt.end());
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_seed(1);
  request.set_max_tokens(max_tokens);
  return request;
}

// For a landing that nobody offers, unless the caller fills it in.
inline v1::PrefillRequest MakePrefillRequest(uint8_t number, const std::vector<TokenId>& prompt,
                                             uint32_t max_tokens = 8) {
  v1::PrefillRequest request;
  *request.mutable_attempt() = MakeAttempt(number);
  *request.mutable_request() = MakeTokenRequest(prompt, max_tokens);
  request.mutable_landing()->set_instance_id("decode-1");
  return request;
}

inline v1::DecodeRequest MakeHandoffRequest(uint8_t number, const std::vector<TokenId>& prompt,
                                            uint32_t max_tokens, const std::string& prefill_instance_id) {
  v1::DecodeRequest request;
  *request.mutable_attempt() = MakeAttempt(number);
  *request.mutable_request() = MakeTokenRequest(prompt, max_tokens);
  request.mutable_handoff()->set_prefill_instance_id(prefill_instance_id);
  return request;
}

inline v1::DecodeRequest MakeLocalRequest(uint8_t number, const std::vector<TokenId>& prompt,
                                          uint32_t max_tokens) {
  v1::DecodeRequest request;
  *request.mutable_attempt() = MakeAttempt(number);
  *request.mutable_request() = MakeTokenRequest(prompt, max_tokens);
  request.mutable_local();
  return request;
}

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_LEG_REQUESTS_H_
