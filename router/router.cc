#include "router/router.h"

#include <algorithm>
#include <utility>

#include "common/error_details.h"
#include "common/str_cat.h"
#include "router/client_stream.h"

namespace baton {

Router::Router(const RouterOptions& options, std::string model_hash, const Tokenizer* tokenizer,
               RandomSource* random)
    : options_(options), tokenizer_(tokenizer), random_(random), workers_(std::move(model_hash)) {}

Router::~Router() = default;

RouterActions Router::OnCall(CallId id, CallSpec spec, absl::Time now) {
  RouterActions actions;
  absl::Status refusal;
  if (draining_) {
    refusal = WithErrorInfo(absl::UnavailableError("the router is draining"), "DRAINING");
  } else if (by_request_id_.contains(spec.request_id)) {
    refusal = absl::AlreadyExistsError(StrCat("request_id: ", spec.request_id, " is in flight"));
  } else if (queue_.size() >= options_.max_queued) {
    refusal = WithRetryInfo(
        absl::ResourceExhaustedError(StrCat("the queue is full: ", options_.max_queued, " requests")),
        absl::Seconds(1));
  }
  if (!refusal.ok()) {
    EndCall end;
    end.call = id;
    end.status = std::move(refusal);
    end.phase = "refused";
    end.request_id = spec.request_id;
    actions.push_back(std::move(end));
    return actions;
  }
  by_request_id_.emplace(spec.request_id, id);
  auto call = std::make_unique<GenerateCall>(id, std::move(spec), &options_.call, tokenizer_, &workers_,
                                             random_, now);
  GenerateCall& added = *call;
  calls_.emplace(id, std::move(call));
  Settle(added, actions);
  Dispatch(now, actions);
  return actions;
}

GenerateCall* Router::Find(CallId id) {
  const auto it = calls_.find(id);
  return it == calls_.end() ? nullptr : it->second.get();
}

void Router::Settle(GenerateCall& call, RouterActions& actions) {
  const CallId id = call.id();
  const std::pair<int, CallId> place(call.has_tokens() ? 0 : 1, id);
  if (call.queued()) {
    queue_.insert(place);
  } else {
    queue_.erase(place);
  }
  const absl::Time next = call.next_timer();
  absl::Time& armed = timer_of_.try_emplace(id, absl::InfiniteFuture()).first->second;
  if (armed != next) {
    timers_.erase({armed, id});
    timers_.emplace(next, id);
    armed = next;
  }
  if (!call.ended()) return;
  timers_.erase({next, id});
  timer_of_.erase(id);
  by_request_id_.erase(call.spec().request_id);
  calls_.erase(id);
}

void Router::Dispatch(absl::Time now, RouterActions& actions) {
  std::vector<WorkerSnapshot> workers;
  bool changed = true;
  const std::vector<std::pair<int, CallId>> waiting(queue_.begin(), queue_.end());
  for (const auto& [rank, id] : waiting) {
    GenerateCall& call = *calls_.at(id);
    if (!call.WantsPair(now)) continue;
    if (std::exchange(changed, false)) workers = workers_.Snapshot();
    const PickResult pick = PickPair(workers, call.pair_request(), options_.picker);
    bool blocked = false;
    switch (pick.outcome) {
      case PickResult::kPicked:
        call.OnPair(pick.pair, now, actions);
        changed = true;
        break;
      case PickResult::kNoWorker:
        call.OnNoWorker(now, actions);
        break;
      case PickResult::kTooLarge:
        call.OnTooLarge(pick.largest_tokens, now, actions);
        break;
      case PickResult::kWait:
        blocked = now - call.queued_since() >= options_.overtake_limit;
        break;
    }
    Settle(call, actions);
    if (blocked) break;
  }
  next_dispatch_ = queue_.empty() ? absl::InfiniteFuture() : now + options_.dispatch_interval;
}

RouterActions Router::EndOne(CallId id, const absl::Status& status, absl::Time now) {
  RouterActions actions;
  GenerateCall* call = Find(id);
  if (call == nullptr) return actions;
  call->End(status, now, actions);
  Settle(*call, actions);
  Dispatch(now, actions);
  return actions;
}

RouterActions Router::OnClientGone(CallId id, absl::Time now) {
  return EndOne(id, absl::CancelledError("the client cancelled"), now);
}

RouterActions Router::OnSlowReader(CallId id, absl::Time now) { return EndOne(id, SlowReaderError(), now); }

RouterActions Router::OnAbort(const std::string& request_id, absl::Time now, bool& found) {
  const auto it = by_request_id_.find(request_id);
  found = it != by_request_id_.end();
  if (!found) return {};
  return EndOne(it->second, absl::AbortedError("aborted by an operator"), now);
}

RouterActions Router::OnPrefillEvent(const LegKey& key, const v1::PrefillEvent& event, absl::Time now) {
  RouterActions actions;
  GenerateCall* call = Find(key.call);
  if (call == nullptr) return actions;
  call->OnPrefillEvent(key.attempt, event, now, actions);
  Settle(*call, actions);
  // A computed prompt makes room on its prefill worker.
  if (event.has_first_token()) Dispatch(now, actions);
  return actions;
}

RouterActions Router::OnDecodeEvent(const LegKey& key, const v1::DecodeEvent& event, absl::Time now) {
  RouterActions actions;
  GenerateCall* call = Find(key.call);
  if (call == nullptr) return actions;
  call->OnDecodeEvent(key.attempt, event, now, actions);
  const bool ended = call->ended();
  Settle(*call, actions);
  if (ended) Dispatch(now, actions);
  return actions;
}

RouterActions Router::OnLegClosed(const LegKey& key, const absl::Status& status, absl::Time now) {
  RouterActions actions;
  GenerateCall* call = Find(key.call);
  if (call == nullptr) return actions;
  call->OnLegClosed(key.attempt, key.leg, status, now, actions);
  Settle(*call, actions);
  Dispatch(now, actions);
  return actions;
}

RouterActions Router::OnWorkersChanged(absl::Time now) {
  RouterActions actions;
  Dispatch(now, actions);
  return actions;
}

absl::Time Router::next_timer() const {
  return std::min(next_dispatch_, timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first);
}

RouterActions Router::OnTimer(absl::Time now) {
  RouterActions actions;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    GenerateCall& call = *calls_.at(timers_.begin()->second);
    call.OnTimer(now, actions);
    Settle(call, actions);
  }
  if (now >= next_dispatch_) Dispatch(now, actions);
  return actions;
}

absl::Status Router::CheckInvariants() const {
  if (by_request_id_.size() != calls_.size())
    return absl::InternalError("calls and request ids differ in number");
  if (timer_of_.size() != calls_.size() || timers_.size() != calls_.size()) {
    return absl::InternalError("calls and timers differ in number");
  }
  size_t queued = 0;
  for (const auto& [id, call] : calls_) {
    if (absl::Status status = call->CheckInvariants(); !status.ok()) return status;
    queued += call->queued();
    if (call->queued() != queue_.contains({call->has_tokens() ? 0 : 1, id})) {
      return absl::InternalError(StrCat("call ", id, " disagrees with the queue"));
    }
  }
  return queued == queue_.size() ? absl::OkStatus()
                                 : absl::InternalError("the queue holds calls that do not wait");
}

}  // namespace baton
