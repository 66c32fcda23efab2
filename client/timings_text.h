#ifndef BATON_CLIENT_TIMINGS_TEXT_H_
#define BATON_CLIENT_TIMINGS_TEXT_H_

#include <string>

#include "baton/v1/inference.pb.h"

namespace baton {

// What the last message of an answer says, in a few lines for people: TTFT and TPOT with their parts, the
// tokens, why the answer ended and the way it took. What the message does not carry is left out.
std::string TimingsText(const v1::GenerateStreamResponse& last);

}  // namespace baton

#endif  // BATON_CLIENT_TIMINGS_TEXT_H_
