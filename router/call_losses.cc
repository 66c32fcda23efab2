#include "router/call_losses.h"

#include <algorithm>

namespace baton {

void CallLosses::Add(const RetryRow& row, const CallLeg& leg, const std::string& prefill,
                     const std::string& decode) {
  ++attempts_;
  // Passed over once. Prefill workers are waited for: they have room for every prompt within a short time.
  without_room_ = row.blame == Blame::kRoom && leg.worker() == decode ? decode : "";
  if (row.after != AfterLeg::kRetry) return;
  ++lost_attempts_;
  owes_retry_ = true;
  if (row.blame == Blame::kPair) pairs_.emplace_back(prefill, decode);
  if (row.blame != Blame::kWorker) return;
  if (leg.has_spoken()) instances_.insert(leg.instance_id());
  workers_.push_back(leg.worker());
}

absl::Duration CallLosses::Backoff(RandomSource& random) const {
  const uint32_t doublings = std::min(attempts_, 16u) - std::min(attempts_, 1u);
  const absl::Duration longest = std::min(limits_->backoff * (1 << doublings), limits_->longest_backoff);
  const double share = 0.5 + 0.5 * static_cast<double>(random.Next() >> 11) * 0x1p-53;
  return longest * share;
}

void CallLosses::Avoid(PairRequest& request) const {
  request.suspects = workers_;
  request.suspect_pairs = pairs_;
  if (!without_room_.empty()) request.suspects.push_back(without_room_);
}

}  // namespace baton
