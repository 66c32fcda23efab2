#include "engine/step_loop.h"

#include <utility>

namespace baton {

bool StepLoop::Post(Event event) {
  return executor_->Post([this, event = std::move(event)]() mutable {
    std::move(event)();
    Turn();
  });
}

void StepLoop::Step() {
  step_posted_ = false;
  if (body_->Step()) {
    Turn();
  } else {
    body_->OnTurned();
  }
}

void StepLoop::Turn() {
  body_->OnTurned();
  // A step queues behind the events that are already waiting, which may change what it computes.
  if (!step_posted_) step_posted_ = executor_->Post([this] { Step(); });

  const absl::Time next = body_->NextTimer();
  if (next == timer_at_) return;
  if (timer_ != 0) executor_->CancelTimer(timer_);
  timer_ = 0;
  timer_at_ = next;
  if (next == absl::InfiniteFuture()) return;
  timer_ = executor_->PostAt(next, [this] {
    timer_ = 0;
    timer_at_ = absl::InfiniteFuture();
    body_->OnTimer();
    Turn();
  });
}

}  // namespace baton
