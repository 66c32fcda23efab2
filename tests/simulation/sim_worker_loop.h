#ifndef BATON_TESTS_SIMULATION_SIM_WORKER_LOOP_H_
#define BATON_TESTS_SIMULATION_SIM_WORKER_LOOP_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tests/simulation/sim_worker.h"

namespace baton {

// What WorkerLoop is to a real worker, whatever its role: brings events to the scheduler, runs the steps that
// it plans and performs its actions, all on the loop.
//
// `Worker` derives from it and adds what its role has beside legs: Perform for the scheduler's other actions,
//   const char* Observe(const TransferId&, const Event&)   an event is on its way; returns what a trace calls
//   it void Run(StepPlan)                                     begins a step, which ends with EndStep
template <typename Worker, typename Scheduler>
class SimWorkerLoop : public SimWorker {
 public:
  using Event = typename Scheduler::Event;
  using Actions = typename Scheduler::Actions;

  // A call of the role's method. Events go to `on_event`, at the router.
  void OnRequest(const std::shared_ptr<SimStream>& stream, const typename Scheduler::Request& request,
                 absl::Duration time_left, typename SimLegs<Event>::OnEvent on_event) {
    if (draining()) return stream->Finish(DrainingStatus());
    const absl::Time now = world_->now();
    const LegId id = legs_.Open(stream, request.attempt().transfer_id(), std::move(on_event));
    stream->set_on_closed_at_server([this, id](const absl::Status&) {
      if (legs_.Closed(id)) Perform(scheduler_.OnLegClosed(id));
    });
    Perform(scheduler_.OnRequest(id, request, now, now + time_left, now));
  }

  v1::GetLoadResponse Load() const override { return Describe(scheduler_.load()); }
  KvPools& pools() override { return engine_.kv(); }
  bool Holds(const TransferId& transfer) const override { return legs_.Holds(transfer); }

 protected:
  // The rest of `scheduler` are what its constructor takes after the pools.
  template <typename Options, typename... Arguments>
  SimWorkerLoop(const WorkerParts& parts, std::string address, std::string instance_id,
                const WorkerPace& pace, const ScriptedEngine::Options& engine, const Options& options,
                Arguments... scheduler)
      : SimWorker(parts, std::move(address), std::move(instance_id), pace),
        engine_(engine),
        scheduler_(options, &engine_.info(), &engine_.kv(), scheduler...),
        timer_(&loop_) {}

  void Perform(Actions actions) {
    for (auto& action : actions) {
      std::visit([this](auto& each) { static_cast<Worker*>(this)->Perform(each); }, action);
    }
    Arm();
    Step();
  }
  void Perform(SendToLeg<Event>& action) {
    const char* const what = static_cast<Worker*>(this)->Observe(legs_.transfer(action.leg), action.event);
    legs_.Send(action.leg, what, std::move(action.event));
  }
  void Perform(CloseLeg& action) { legs_.Close(action.leg, action.status); }

  // At the end of a step, in the loop.
  void EndStep(const StepResult& result) {
    stepping_ = false;
    loop_.Release();
    Perform(scheduler_.OnStepDone(result, world_->now()));
  }

  bool NoLegs() const { return scheduler_.open_legs() == 0 && legs_.empty(); }
  bool WaitsForTimer() const { return scheduler_.next_timer() != absl::InfiniteFuture(); }
  ScriptedEngine& engine() { return engine_; }
  const ScriptedEngine& engine() const { return engine_; }
  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  void Arm() {
    timer_.Arm(scheduler_.next_timer(), [this] {
      if (world_->now() >= scheduler_.next_timer()) Perform(scheduler_.OnTimer(world_->now()));
      Arm();
    });
  }
  void Step() {
    if (stepping_) return;
    Actions actions;
    std::optional<StepPlan> plan = scheduler_.StartStep(world_->now(), actions);
    if (plan) {
      stepping_ = true;
      if (pace_.loop_waits_for_step) loop_.Hold();
      static_cast<Worker*>(this)->Run(*std::move(plan));
    }
    if (!actions.empty()) Perform(std::move(actions));
  }

  ScriptedEngine engine_;
  Scheduler scheduler_;
  SimLegs<Event> legs_;
  SimTimer timer_;
  bool stepping_ = false;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_WORKER_LOOP_H_
