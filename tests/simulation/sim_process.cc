#include "tests/simulation/sim_process.h"

#include "tests/simulation/sim_network.h"

namespace baton {

void SimProcess::Kill(bool lose_sent) {
  if (!std::exchange(alive_, false)) return;
  for (SimExecutor* thread : {&loop_, &transfer_, &control_}) thread->End();
  network_->OnProcessGone(*this, lose_sent);
}

void SimProcess::Stop() {
  if (!alive_ || stopped_since_) return;
  stopped_since_ = world_->now();
  for (SimExecutor* thread : {&loop_, &transfer_, &control_}) thread->Stop();
  network_->WatchStreamsOf(address_);
}

void SimProcess::Continue() {
  if (!alive_ || !stopped_since_) return;
  stopped_since_.reset();
  for (SimExecutor* thread : {&loop_, &transfer_, &control_}) thread->Continue();
}

void SimProcess::Wedge() {
  if (!alive_ || wedged_since_) return;
  wedged_since_ = world_->now();
  loop_.Stop();
}

void SimProcess::Unwedge() {
  if (!alive_ || !wedged_since_) return;
  wedged_since_.reset();
  loop_.Continue();
}

}  // namespace baton
