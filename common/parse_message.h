#ifndef BATON_COMMON_PARSE_MESSAGE_H_
#define BATON_COMMON_PARSE_MESSAGE_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace baton {

// Parses a client's message. The library's own parsing refuses text that is not UTF-8 without a word, and
// gRPC then answers UNIMPLEMENTED: so public methods take bytes and parse them here. INVALID_ARGUMENT names
// the field that is not UTF-8, as in "chat.messages[1].content", or says that the message is malformed.
absl::Status ParseMessage(const std::string& bytes, google::protobuf::Message* message);

}  // namespace baton

#endif  // BATON_COMMON_PARSE_MESSAGE_H_
