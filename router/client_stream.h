#ifndef BATON_ROUTER_CLIENT_STREAM_H_
#define BATON_ROUTER_CLIENT_STREAM_H_

#include "absl/status/status.h"
#include "baton/v1/inference.pb.h"
#include "common/error_details.h"

namespace baton {

// How a call ends whose client does not read.
inline absl::Status SlowReaderError() {
  return WithErrorInfo(absl::ResourceExhaustedError("the client does not read its stream"), "SLOW_READER");
}

// Where a call's answer goes. Used by the router's executor; no method blocks.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  // False when the client reads too slowly to take it: the answer has a hole, whatever is sent after it is
  // dropped, and it is to be ended.
  virtual bool Send(v1::GenerateStreamResponse response) = 0;
  // Once, after the last Send. An answer with a hole ends with SlowReaderError, never with OK.
  virtual void End(const absl::Status& status, const v1::Timings& timings) = 0;
};

}  // namespace baton

#endif  // BATON_ROUTER_CLIENT_STREAM_H_
