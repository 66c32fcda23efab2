#ifndef BATON_ROUTER_CALL_LOSSES_H_
#define BATON_ROUTER_CALL_LOSSES_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/random_source.h"
#include "router/call_leg.h"
#include "router/pair_picker.h"
#include "router/retry_table.h"

namespace baton {

struct LossLimits {
  // A request that was computed on so many lost workers may be the cause. One that had said nothing yet has
  // computed nothing: it does not count.
  uint32_t max_lost_workers = 2;
  uint32_t max_lost_attempts = 6;  // for whatever reason, moves excepted
  // Before another attempt: doubled with each, half of it random, so that what failed together does not
  // return together.
  absl::Duration backoff = absl::Milliseconds(20);
  absl::Duration longest_backoff = absl::Milliseconds(320);
};

// What was lost while one request was computed, and whom its next attempt avoids. Owned by a GenerateCall.
class CallLosses {
 public:
  // `limits` outlives it.
  explicit CallLosses(const LossLimits* limits) : limits_(limits) {}

  // An attempt ended with `leg`, as the row says; `prefill` and `decode` name its pair.
  void Add(const RetryRow& row, const CallLeg& leg, const std::string& prefill, const std::string& decode);
  // Two workers, or too many attempts, were lost: the request ends.
  bool exhausted() const {
    return instances_.size() >= limits_->max_lost_workers || lost_attempts_ >= limits_->max_lost_attempts;
  }
  // How long the next attempt waits.
  absl::Duration Backoff(RandomSource& random) const;
  // The next attempt replaces a lost one rather than one that was moved.
  bool owes_retry() const { return owes_retry_; }
  void OnRetryPaid() { owes_retry_ = false; }
  void Avoid(PairRequest& request) const;

 private:
  const LossLimits* limits_;
  uint32_t attempts_ = 0;
  uint32_t lost_attempts_ = 0;
  bool owes_retry_ = false;
  std::set<std::string> instances_;
  std::vector<std::string> workers_;
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::string without_room_;  // as the latest attempt found
};

}  // namespace baton

#endif  // BATON_ROUTER_CALL_LOSSES_H_
