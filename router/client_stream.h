#ifndef BATON_ROUTER_CLIENT_STREAM_H_
#define BATON_ROUTER_CLIENT_STREAM_H_

#include "absl/status/status.h"
#include "baton/v1/inference.pb.h"

namespace baton {

// Where a call's answer goes. Used by the router's executor; no method blocks.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  // False when the client reads too slowly to take it: the answer is to be ended.
  virtual bool Send(v1::GenerateStreamResponse response) = 0;
  // Once, after the last Send.
  virtual void End(const absl::Status& status, const v1::Timings& timings) = 0;
};

}  // namespace baton

#endif  // BATON_ROUTER_CLIENT_STREAM_H_
