#include "common/drain_state.h"

#include "common/check.h"
#include "common/error_details.h"

namespace baton {

DrainState::Work& DrainState::Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    Release();
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

void DrainState::Work::Release() {
  DrainState* const state = std::exchange(state_, nullptr);
  if (state == nullptr) return;
  MutexLock lock(&state->mutex_);
  BATON_CHECK(state->snapshot_.running > 0);
  --state->snapshot_.running;
  if (state->requested_) {
    state->NotifyListeners();
    state->changed_.SignalAll();
  }
}

absl::StatusOr<DrainState::Work> DrainState::Admit() {
  MutexLock lock(&mutex_);
  if (snapshot_.phase >= ServingPhase::kRefusing) {
    return WithErrorInfo(absl::UnavailableError("this process is shutting down and takes no new work"),
                         "DRAINING");
  }
  ++snapshot_.running;
  if (requested_) NotifyListeners();
  return Work(this);
}

void DrainState::RequestDrain() {
  MutexLock lock(&mutex_);
  requested_ = true;
  changed_.SignalAll();
}

void DrainState::Hurry() {
  MutexLock lock(&mutex_);
  requested_ = true;
  hurried_ = true;
  changed_.SignalAll();
}

bool DrainState::requested() const {
  MutexLock lock(&mutex_);
  return requested_;
}

DrainState::Snapshot DrainState::snapshot() const {
  MutexLock lock(&mutex_);
  return snapshot_;
}

bool DrainState::hurried() const {
  MutexLock lock(&mutex_);
  return hurried_;
}

DrainState::ListenerId DrainState::Subscribe(Listener listener) {
  MutexLock lock(&mutex_);
  listener(snapshot_);
  listeners_.emplace(next_listener_id_, std::move(listener));
  return next_listener_id_++;
}

void DrainState::Unsubscribe(ListenerId id) {
  MutexLock lock(&mutex_);
  listeners_.erase(id);
}

ServingPhase DrainState::AwaitNextPhase(const Clock& clock, DrainSequence* sequence) {
  const ServingPhase before = sequence->phase();
  MutexLock lock(&mutex_);
  while (true) {
    const absl::Time now = clock.Now();
    const ServingPhase phase =
        sequence->Advance(now, {.requested = requested_, .hurried = hurried_, .running = snapshot_.running});
    if (phase != before) {
      snapshot_.phase = phase;
      NotifyListeners();
      return phase;
    }
    changed_.WaitFor(&mutex_, sequence->next_advance() - now);
  }
}

void DrainState::NotifyListeners() {
  for (const auto& [id, listener] : listeners_) listener(snapshot_);
}

std::string_view ServingPhaseName(ServingPhase phase) {
  switch (phase) {
    case ServingPhase::kServing:
      return "SERVING";
    case ServingPhase::kNotServing:
      return "NOT_SERVING";
    case ServingPhase::kRefusing:
      return "REFUSING";
    case ServingPhase::kHandingBack:
      return "HANDING_BACK";
    case ServingPhase::kStopping:
      return "STOPPING";
  }
  BATON_CHECK(false);
}

}  // namespace baton
