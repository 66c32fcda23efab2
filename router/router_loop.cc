#include "router/router_loop.h"

#include <algorithm>
#include <future>
#include <utility>

#include "common/log.h"

namespace baton {

RouterLoop::RouterLoop(const RouterOptions& options, std::string model_hash, const Parts& parts)
    : executor_(parts.executor),
      clock_(parts.clock),
      metrics_(parts.metrics),
      stubs_(parts.stubs),
      router_(options, std::move(model_hash), parts.tokenizer, parts.random) {}

void RouterLoop::Start(CallId call, CallSpec spec, std::shared_ptr<ClientStream> stream) {
  auto shared = std::make_shared<CallSpec>(std::move(spec));
  const bool posted = executor_->Post([this, call, shared, stream] {
    streams_.emplace(call, stream);
    Perform(router_.OnCall(call, std::move(*shared), clock_->Now()));
  });
  if (!posted) stream->End(absl::UnavailableError("the router is stopping"), {});
}

void RouterLoop::ClientGone(CallId call) {
  executor_->Post([this, call] { Perform(router_.OnClientGone(call, clock_->Now())); });
}

void RouterLoop::Abort(std::string request_id, std::function<void(absl::StatusOr<bool> found)> done) {
  const bool posted = executor_->Post([this, request_id = std::move(request_id), done] {
    bool found = false;
    Perform(router_.OnAbort(request_id, clock_->Now(), found));
    done(found);
  });
  if (!posted) done(absl::UnavailableError("the router is stopping"));
}

void RouterLoop::UpdateWorkers(std::function<void(WorkerRegistry&)> change) {
  executor_->Post([this, change = std::move(change)] {
    change(router_.workers());
    Perform(router_.OnWorkersChanged(clock_->Now()));
    PublishWorkers();
  });
}

void RouterLoop::PublishWorkers() {
  const WorkerRegistry& workers = router_.workers();
  Board board;
  board.workers = workers.List();
  board.can_serve = workers.ServedModel(&board.model);
  metrics_->OnWorkers(board.workers);
  bool changed = false;
  {
    MutexLock lock(&board_mutex_);
    changed = board.can_serve != board_.can_serve;
    board.load = board_.load;
    board_ = board;
  }
  if (changed && serving_listener_) serving_listener_(board.can_serve);
}

void RouterLoop::OnServingChange(std::function<void(bool)> listener) {
  executor_->Post(
      [this, listener = std::move(listener)]() mutable { serving_listener_ = std::move(listener); });
}

RouterLoop::Board RouterLoop::board() const {
  MutexLock lock(&board_mutex_);
  return board_;
}

void RouterLoop::Perform(RouterActions actions) {
  Publish();  // first: who hears of an ended call finds it gone from the load
  for (RouterAction& action : actions) {
    std::visit([this](auto& known) { Do(known); }, action);
  }
  Arm();
}

void RouterLoop::Do(OpenPrefillLeg& open) {
  const LegKey key = open.key;
  auto request = std::make_shared<v1::PrefillRequest>(std::move(open.request));
  const std::shared_ptr<v1::PrefillWorker::Stub> stub = stubs_->Prefill(open.worker);
  OnLegOpened();
  legs_[key] = LegClient<v1::PrefillEvent>::Open(
      open.deadline - clock_->Now(),
      // The request and the stub live as long as the call.
      {.on_event =
           [this, key, request, stub](v1::PrefillEvent event) {
             executor_->Post([this, key, event = std::move(event)] {
               Perform(router_.OnPrefillEvent(key, event, clock_->Now()));
             });
           },
       .on_closed = [this, key](const absl::Status& status) { OnLegClosed(key, status); }},
      [&](grpc::ClientContext* context, auto* reactor) {
        stub->async()->Prefill(context, request.get(), reactor);
      });
}

void RouterLoop::Do(OpenDecodeLeg& open) {
  const LegKey key = open.key;
  auto request = std::make_shared<v1::DecodeRequest>(std::move(open.request));
  const std::shared_ptr<v1::DecodeWorker::Stub> stub = stubs_->Decode(open.worker);
  OnLegOpened();
  legs_[key] = LegClient<v1::DecodeEvent>::Open(
      open.deadline - clock_->Now(),
      {.on_event =
           [this, key, request, stub](v1::DecodeEvent event) {
             executor_->Post([this, key, event = std::move(event)] {
               Perform(router_.OnDecodeEvent(key, event, clock_->Now()));
             });
           },
       .on_closed = [this, key](const absl::Status& status) { OnLegClosed(key, status); }},
      [&](grpc::ClientContext* context, auto* reactor) {
        stub->async()->Decode(context, request.get(), reactor);
      });
}

void RouterLoop::OnLegOpened() {
  MutexLock lock(&legs_mutex_);
  ++legs_in_flight_;
}

void RouterLoop::OnLegClosed(const LegKey& key, const absl::Status& status) {
  executor_->Post([this, key, status] {
    legs_.erase(key);
    Perform(router_.OnLegClosed(key, status, clock_->Now()));
  });
  MutexLock lock(&legs_mutex_);
  if (--legs_in_flight_ == 0) no_legs_.SignalAll();
}

void RouterLoop::AwaitNoLegs() {
  // Behind what the calls posted before they ended: it may still open a leg.
  std::promise<void> reached;
  if (executor_->Post([&reached] { reached.set_value(); })) reached.get_future().wait();
  MutexLock lock(&legs_mutex_);
  while (legs_in_flight_ > 0) no_legs_.Wait(&legs_mutex_);
}

void RouterLoop::Do(CancelLeg& cancel) {
  const auto it = legs_.find(cancel.key);
  if (it != legs_.end()) std::visit([](const auto& leg) { leg->Cancel(); }, it->second);
}

void RouterLoop::Do(SendToClient& send) {
  const auto it = streams_.find(send.call);
  if (it == streams_.end()) return;
  metrics_->OnSend(send);
  if (it->second->Send(std::move(send.response))) return;
  executor_->Post([this, call = send.call] { Perform(router_.OnSlowReader(call, clock_->Now())); });
}

void RouterLoop::Do(EndCall& end) {
  const auto it = streams_.find(end.call);
  if (it == streams_.end()) return;
  metrics_->OnEnd(end);
  if (!end.status.ok()) {
    Log(LogLevel::kWarning, "request_failed",
        {{"request_id", end.request_id}, {"phase", end.phase}, {"status", end.status}});
  } else {
    Log(LogLevel::kDebug, "request_end",
        {{"request_id", end.request_id},
         {"prompt_tokens", end.usage.prompt_tokens()},
         {"completion_tokens", end.usage.completion_tokens()},
         {"ttft_ms", end.timings.ttft_ms()},
         {"e2e_ms", end.timings.e2e_ms()}});
  }
  it->second->End(end.status, end.timings);
  streams_.erase(it);
}

void RouterLoop::Do(AttemptLost& lost) {
  metrics_->OnAttemptLost(lost);
  Log(LogLevel::kWarning, "attempt_lost",
      {{"request_id", lost.request_id},
       {"attempt", lost.leg.attempt},
       {"leg", lost.leg.leg == Leg::kPrefill ? "prefill" : "decode"},
       {"phase", lost.phase},
       {"reason", lost.reason},
       {"worker", lost.worker},
       {"status", lost.status}});
  PublishWorkers();
}

void RouterLoop::Arm() {
  const absl::Time next = router_.next_timer();
  if (next == timer_at_) return;
  if (timer_ != 0) executor_->CancelTimer(timer_);
  timer_ = 0;
  timer_at_ = next;
  if (next == absl::InfiniteFuture()) return;
  timer_ = executor_->PostAt(next, [this] {
    timer_ = 0;
    timer_at_ = absl::InfiniteFuture();
    Perform(router_.OnTimer(clock_->Now()));
  });
}

void RouterLoop::Publish() {
  const uint32_t waiting = router_.queued();
  const uint32_t running = router_.calls() - waiting;
  metrics_->OnLoad(running, waiting, router_.waiting_tokens());
  MutexLock lock(&board_mutex_);
  board_.load.set_requests_running(running);
  board_.load.set_requests_waiting(waiting);
  board_.load.set_waiting_tokens(
      static_cast<uint32_t>(std::min<uint64_t>(router_.waiting_tokens(), UINT32_MAX)));
}

}  // namespace baton
