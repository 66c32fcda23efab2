#ifndef BATON_CLIENT_REQUEST_RECORD_H_
#define BATON_CLIENT_REQUEST_RECORD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace baton {

// What the client saw of one request. A plain value; all times are of one clock.
struct RequestRecord {
  // Of an open load: when the schedule wanted it; a late start counts as waiting. Otherwise when it was sent.
  absl::Time start;
  absl::Time end;  // When its status came.
  absl::Status status;

  std::optional<absl::Time> first_token;
  std::optional<absl::Time> last_token;
  std::vector<absl::Duration> gaps;  // Between tokens; those that came in one message share its gap evenly.
  uint32_t tokens = 0;               // Received.
  uint32_t prompt_tokens = 0;

  // The router's own figures, absent where it sent none.
  std::optional<double> router_ttft_ms;
  std::optional<double> router_tpot_ms;
  std::optional<double> handoff_ms;

  absl::Duration e2e() const { return end - start; }

  // First token released to the client, as the client saw it; absent when none came.
  std::optional<absl::Duration> ttft() const {
    if (!first_token) return std::nullopt;
    return *first_token - start;
  }

  // (last token - first token) / (n - 1); absent below two tokens.
  std::optional<absl::Duration> tpot() const {
    if (tokens < 2 || !first_token || !last_token) return std::nullopt;
    return (*last_token - *first_token) / static_cast<double>(tokens - 1);
  }
};

}  // namespace baton

#endif  // BATON_CLIENT_REQUEST_RECORD_H_
