#ifndef BATON_ROUTER_ROUTER_ACTIONS_H_
#define BATON_ROUTER_ROUTER_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/decode.pb.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/prefill.pb.h"

namespace baton {

// One client call, minted by the shell that owns its stream, never reused within a process.
using CallId = uint64_t;

enum class Leg : uint8_t { kPrefill, kDecode };

// Names one leg of one attempt of one call.
struct LegKey {
  CallId call = 0;
  uint32_t attempt = 0;
  Leg leg = Leg::kPrefill;
  auto operator<=>(const LegKey&) const = default;
};

// What the owner of a Router must do, in the order given.
struct OpenPrefillLeg {
  LegKey key;
  std::string worker;  // by the router's name for it
  v1::PrefillRequest request;
  absl::Time deadline;
};
struct OpenDecodeLeg {
  LegKey key;
  std::string worker;
  v1::DecodeRequest request;
  absl::Time deadline;
};
// Answered by OnLegClosed, like every other end of a leg.
struct CancelLeg {
  LegKey key;
};
struct SendToClient {
  CallId call = 0;
  v1::GenerateStreamResponse response;
  std::optional<absl::Duration> gap;  // since the token before, for the inter-token latency
};
// Exactly once per call; nothing is sent to its client afterwards.
struct EndCall {
  CallId call = 0;
  absl::Status status;
  const char* phase = "";  // in which it ended: queued, reserving, prefilling, decoding
  std::string request_id;
  v1::FinishReason finish = v1::FINISH_REASON_UNSPECIFIED;  // with an OK status
  v1::Timings timings;  // as in the last message; parts that were not reached are absent
  v1::Usage usage;
};

// An attempt was given up and the call queues again: for logs and metrics.
struct AttemptLost {
  CallId call = 0;
  std::string request_id;
  LegKey leg;  // the one that ended it
  std::string worker;
  absl::Status status;
  const char* phase = "";   // as in EndCall
  std::string_view reason;  // a word of the retry table
};

// A lost attempt is not replaced yet: the router's retry budget is used up.
struct RetryHeld {
  CallId call = 0;
};

using RouterAction =
    std::variant<OpenPrefillLeg, OpenDecodeLeg, CancelLeg, SendToClient, EndCall, AttemptLost, RetryHeld>;
using RouterActions = std::vector<RouterAction>;

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_ACTIONS_H_
