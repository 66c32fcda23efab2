#include "router/call_leg.h"

#include <algorithm>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "router/retry_table.h"

namespace baton {

void CallLeg::Assign(std::string worker, std::string instance_id, Assignment assignment) {
  worker_ = std::move(worker);
  instance_id_ = std::move(instance_id);
  assignment_ = std::move(assignment);
}

void CallLeg::Open(Phase phase, absl::Time now) {
  heard_ = now;
  steps_.reset();
  has_spoken_ = false;
  Enter(phase, now);
}

void CallLeg::Enter(Phase phase, absl::Time now) {
  phase_ = phase;
  moved_ = now;
}

void CallLeg::OnSteps(double steps, absl::Time now) {
  const std::optional<double> before = std::exchange(steps_, steps);
  const bool waits_for_steps = phase_ == Phase::kComputing || phase_ == Phase::kStepping;
  if (waits_for_steps && before && *before != steps) moved_ = now;
}

bool CallLeg::Close() {
  assignment_.Reset();
  return std::exchange(phase_, Phase::kClosed) != Phase::kClosed;
}

absl::Duration CallLeg::Cut(absl::Duration limit, absl::Time since, absl::Time deadline) const {
  return std::min(limit, std::max(limits_->shortest, (deadline - since) / 2));
}

absl::Time CallLeg::SilentAt(absl::Time deadline) const {
  return heard_ + Cut(limits_->silence, heard_, deadline);
}

absl::Time CallLeg::StalledAt(absl::Time deadline) const {
  switch (phase_) {
    case Phase::kComputing:
    case Phase::kStepping:
      return moved_ + Cut(limits_->stall, moved_, deadline);
    case Phase::kPushing:
      return moved_ + Cut(limits_->handoff, moved_, deadline);
    default:
      return absl::InfiniteFuture();
  }
}

absl::Time CallLeg::lost_at(absl::Time deadline) const {
  if (phase_ == Phase::kClosed || phase_ == Phase::kIdle) return absl::InfiniteFuture();
  return std::min(SilentAt(deadline), StalledAt(deadline));
}

absl::Status CallLeg::LossAt(absl::Time now, absl::Time deadline) const {
  if (now < lost_at(deadline)) return absl::OkStatus();
  if (now >= SilentAt(deadline)) {
    return WithErrorInfo(absl::UnavailableError("nothing was heard on the leg"), kReasonSilent);
  }
  if (phase_ == Phase::kPushing) {
    return WithErrorInfo(absl::UnavailableError("the handoff takes too long"), kReasonHandoffFailed);
  }
  return WithErrorInfo(absl::UnavailableError("the worker takes no steps"), kReasonStalled);
}

}  // namespace baton
