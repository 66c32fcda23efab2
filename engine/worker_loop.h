#ifndef BATON_ENGINE_WORKER_LOOP_H_
#define BATON_ENGINE_WORKER_LOOP_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/executor.h"
#include "common/metrics.h"
#include "common/mutex.h"
#include "common/outgoing_stream.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "engine/leg_table.h"
#include "engine/load_board.h"
#include "engine/step_loop.h"
#include "engine/warm_up.h"

namespace baton {

// What outlives a worker. The executor is its alone: its thread computes.
struct WorkerParts {
  Engine* engine = nullptr;
  Device* device = nullptr;
  Executor* executor = nullptr;
  const Clock* clock = nullptr;
  Metrics* metrics = nullptr;
};

// The loop of a worker, whatever its role: brings events to the scheduler, runs the steps that it plans and
// performs its actions. Decides nothing. Public methods may be called from any thread; only WarmUp blocks.
//
// `Worker` derives from it and adds what its role has beside legs: Perform for the scheduler's other actions,
//   void Observe(const Event&)                            an event is on its way: for the metrics
//   Engine::LayersDone layers_done()                      for Execute
//   static uint32_t RecomputedTokens(const Request&)      that an attempt computes again
//
//   executor.Stop() comes before the worker's end, and the end of what calls it before that.
template <typename Worker, typename Scheduler>
class WorkerLoop : private StepLoopBody {
 public:
  using Request = typename Scheduler::Request;
  using Event = typename Scheduler::Event;
  using Stream = OutgoingStream<Event>;

  // Before the first request: the engine's first steps run for nobody, and are measured. Returns when they
  // have run.
  void WarmUp(uint32_t rows) {
    Mutex mutex;
    CondVar changed;
    bool warm = false;
    const bool posted = loop_.Post([&] {
      const WarmUpStep step = baton::WarmUp(engine_, rows, *clock_);
      scheduler_.OnWarmUp(step.rows, step.took);
      MutexLock lock(&mutex);
      warm = true;
      changed.SignalAll();
    });
    MutexLock lock(&mutex);
    while (posted && !warm) changed.Wait(&mutex);
  }

  LegId NewLeg() { return ++last_leg_; }
  // The events of `leg` go to `stream`, which is finished when the leg ends, unless OnLegClosed comes first.
  void OnRequest(LegId leg, std::shared_ptr<Stream> stream, Request request, absl::Time received,
                 absl::Time deadline) {
    const std::shared_ptr<Stream> kept = stream;
    const bool posted =
        loop_.Post([this, leg, stream = std::move(stream), request = std::move(request), received,
                    deadline]() mutable { Begin(leg, std::move(stream), request, received, deadline); });
    if (!posted) kept->Finish(absl::UnavailableError("this worker has stopped"));
  }
  void OnLegClosed(LegId leg) {
    loop_.Post([this, leg] {
      if (legs_.Closed(leg, scheduler_.phase(leg))) Perform(scheduler_.OnLegClosed(leg));
    });
  }
  // `done` is called on the loop's thread, or in this call with UNAVAILABLE once the loop has stopped.
  void Abort(std::string request_id, std::function<void(absl::StatusOr<bool> found)> done) {
    const bool posted = loop_.Post([this, request_id = std::move(request_id), done] {
      typename Scheduler::Actions actions = scheduler_.OnAbort(request_id);
      const bool found = !actions.empty();
      Perform(std::move(actions));
      done(found);
    });
    if (!posted) done(absl::UnavailableError("this worker has stopped"));
  }
  // The drain's time is up: what still runs goes back to the router, which moves it.
  void HandBack() {
    loop_.Post([this] { Perform(scheduler_.OnHandBack(clock_->Now())); });
  }

  v1::GetLoadResponse load() const { return board_.Read(); }
  // How far the loop has come; asks it to turn once more, so that an idle one comes further too.
  LoopPulse TakePulse() {
    const LoopPulse pulse = board_.pulse();
    // One that has not turned since still has the event of the last time.
    if (pulse.turns != asked_at_.exchange(pulse.turns)) loop_.Post([] {});
    return pulse;
  }

 protected:
  // The rest of `scheduler` are the arguments of the scheduler's constructor.
  template <typename... Arguments>
  WorkerLoop(std::string instance_id, const WorkerParts& parts, Arguments&&... scheduler)
      : instance_id_(std::move(instance_id)),
        engine_(parts.engine),
        clock_(parts.clock),
        metrics_(parts.metrics),
        batch_size_(metrics_->Get<Metric::kBatchSize>()),
        board_(&engine_->kv(), metrics_),
        loop_(parts.executor, this),
        scheduler_(std::forward<Arguments>(scheduler)...),
        legs_(metrics_) {}

  // Runs `event`, which returns the scheduler's actions, on the loop and performs them. For other threads.
  template <typename SchedulerEvent>
  void Post(SchedulerEvent event) {
    loop_.Post([this, event = std::move(event)]() mutable { Perform(event(scheduler_)); });
  }
  void Perform(typename Scheduler::Actions actions) {
    for (auto& action : actions) {
      std::visit([this](auto& each) { static_cast<Worker*>(this)->Perform(each); }, action);
    }
  }
  void Perform(SendToLeg<Event>& action) {
    static_cast<Worker*>(this)->Observe(action.event);
    if (!legs_.Send(action.leg, std::move(action.event))) Perform(scheduler_.OnLegClosed(action.leg));
  }
  void Perform(CloseLeg& action) { legs_.Close(action.leg, action.status, action.finish); }

  Scheduler& scheduler() { return scheduler_; }  // of the loop
  const Clock& clock() const { return *clock_; }
  Metrics& metrics() { return *metrics_; }

 private:
  // How long the figures of draining blocks may be old.
  static constexpr absl::Duration kRepublish = absl::Milliseconds(100);

  void Begin(LegId leg, std::shared_ptr<Stream> stream, const Request& request, absl::Time received,
             absl::Time deadline) {
    legs_.Open(leg, request.attempt().request_id(), std::move(stream));
    if (request.attempt().has_instance_id() && request.attempt().instance_id() != instance_id_) {
      legs_.Close(
          leg,
          WithErrorInfo(absl::UnavailableError("another process was meant, which this one has replaced"),
                        kReasonWrongInstance),
          "");
      return;
    }
    typename Scheduler::Actions actions =
        scheduler_.OnRequest(leg, request, received, deadline, clock_->Now());
    const uint32_t again = scheduler_.phase(leg).empty() ? 0 : Worker::RecomputedTokens(request);
    if (again > 0) metrics_->template Get<Metric::kRecomputedTokens>().Increment(again);
    Perform(std::move(actions));
  }

  bool Step() override {
    typename Scheduler::Actions actions;
    const std::optional<StepPlan> plan = scheduler_.StartStep(clock_->Now(), actions);
    Perform(std::move(actions));
    if (!plan) return false;
    batch_size_.Observe(static_cast<double>(plan->sequences.size()));
    const StepResult result = engine_->Execute(*plan, static_cast<Worker*>(this)->layers_done());
    Perform(scheduler_.OnStepDone(result, clock_->Now()));
    return true;
  }
  absl::Time NextTimer() override { return std::min(scheduler_.next_timer(), publish_at_); }
  void OnTimer() override { Perform(scheduler_.OnTimer(clock_->Now())); }
  void OnTurned() override {
    publish_at_ = board_.Publish(scheduler_.load()) ? absl::InfiniteFuture() : clock_->Now() + kRepublish;
  }

  const std::string instance_id_;
  Engine* const engine_;
  const Clock* const clock_;
  Metrics* const metrics_;
  prometheus::Histogram& batch_size_;
  std::atomic<LegId> last_leg_ = 0;
  std::atomic<uint64_t> asked_at_ = 0;  // LoopPulse::turns at the latest TakePulse
  LoadBoard board_;
  StepLoop loop_;
  // Of the loop.
  Scheduler scheduler_;
  LegTable<Event> legs_;
  absl::Time publish_at_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_ENGINE_WORKER_LOOP_H_
