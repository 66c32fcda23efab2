#include "router/router.h"

#include <algorithm>
#include <utility>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/str_cat.h"
#include "router/client_stream.h"

namespace baton {

Router::Router(const RouterOptions& options, std::string model_hash, const Tokenizer* tokenizer,
               RandomSource* random)
    : options_(options),
      tokenizer_(tokenizer),
      random_(random),
      workers_(std::move(model_hash)),
      queue_(options.admission),
      retries_(options.retries) {}

Router::~Router() = default;

RouterActions Router::OnCall(CallId id, CallSpec spec, absl::Time now) {
  RouterActions actions;
  absl::Status refusal;
  const QueuedCall queued = {id, spec.tenant, spec.priority, spec.prompt.size() + spec.max_tokens,
                             spec.arrival};
  if (draining_) {
    refusal = WithErrorInfo(absl::UnavailableError("the router is draining"), kReasonDraining);
  } else if (by_request_id_.contains(spec.request_id)) {
    refusal = absl::AlreadyExistsError(StrCat("request_id: ", spec.request_id, " is in flight"));
  } else {
    refusal = queue_.Admit(queued, std::min(options_.call.queue_limit, spec.deadline - now));
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
  queue_.Push(queued, now);
  retries_.OnRequest();
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
  if (!call.queued()) {
    queue_.Erase(id);
  } else if (!queue_.Contains(id)) {
    queue_.PushAgain(id, call.has_tokens(), call.spec().arrival);
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

bool Router::Place(GenerateCall& call, const std::vector<WorkerSnapshot>& workers, absl::Time now,
                   RouterActions& actions) {
  const PickResult pick = PickPair(workers, call.pair_request(now), options_.picker);
  switch (pick.outcome) {
    case PickResult::kPicked:
      if (call.owes_retry() && !retries_.Take(calls(), now)) {
        call.HoldRetry(now + options_.retry_pause);
        actions.push_back(RetryHeld{call.id()});
        return false;
      }
      queue_.Take(call.id(), now);
      call.OnPair(pick.pair, now, actions);
      return true;
    case PickResult::kNoWorker:
      call.OnNoWorker(now, actions);
      return false;
    case PickResult::kTooLarge:
      call.OnTooLarge(pick.largest_tokens, now, actions);
      return false;
    case PickResult::kWait:
      if (now - call.queued_since() >= options_.overtake_limit) fenced_.insert(pick.awaited);
      return false;
  }
  return false;
}

void Router::Dispatch(absl::Time now, RouterActions& actions) {
  fenced_.clear();
  AdmissionQueue::Round round(&queue_);
  std::vector<WorkerSnapshot> workers;
  bool placed = true;
  for (uint32_t passed = 0; passed < options_.max_passed;) {
    const std::optional<CallId> id = round.Next();
    if (!id) break;
    GenerateCall& call = *calls_.at(*id);
    if (!call.WantsPair(now)) continue;
    if (placed) workers = workers_.Snapshot();
    for (WorkerSnapshot& worker : workers) worker.fenced = fenced_.contains(worker.name);
    placed = Place(call, workers, now, actions);
    passed += placed ? 0 : 1;
    Settle(call, actions);
  }
  next_dispatch_ = queue_.size() == 0 ? absl::InfiniteFuture() : now + options_.dispatch_interval;
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
  const uint64_t before = std::exchange(replacements_, workers_.replacements());
  if (before != replacements_) {
    std::set<CallId> calls;
    for (const auto& [id, call] : calls_) calls.insert(id);
    for (const CallId id : calls) {
      GenerateCall& call = *calls_.at(id);
      call.OnReplacement(now, actions);
      Settle(call, actions);
    }
  }
  Dispatch(now, actions);
  return actions;
}

absl::Time Router::next_timer() const {
  return std::min(next_dispatch_, timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first);
}

RouterActions Router::OnTimer(absl::Time now) {
  RouterActions actions;
  bool look = now >= next_dispatch_;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    look = true;  // a call that lost its legs queues, one that ended leaves room
    GenerateCall& call = *calls_.at(timers_.begin()->second);
    call.OnTimer(now, actions);
    Settle(call, actions);
  }
  if (look) Dispatch(now, actions);
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
    if (call->queued() != queue_.Contains(id)) {
      return absl::InternalError(StrCat("call ", id, " disagrees with the queue"));
    }
  }
  if (queued != queue_.size()) return absl::InternalError("the queue holds calls that do not wait");
  return queue_.CheckInvariants();
}

}  // namespace baton
