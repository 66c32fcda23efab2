#ifndef BATON_TESTS_SIMULATION_SIM_WORKER_H_
#define BATON_TESTS_SIMULATION_SIM_WORKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/control.pb.h"
#include "common/transfer_id.h"
#include "engine/job.h"
#include "tests/simulation/call_board.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"
#include "tests/support/scripted_engine.h"

namespace baton {

// How long things take on a simulated worker.
struct WorkerPace {
  absl::Duration step_base = absl::Milliseconds(1);
  absl::Duration step_row = absl::Microseconds(50);
  double bytes_per_second = 1e9;                      // onto a Land stream
  absl::Duration longest_hop = absl::ZeroDuration();  // between threads
  bool loop_waits_for_step = false;  // as the real loop does; otherwise events come in the middle of steps
};

// What a worker needs of its surroundings; all outlive it.
struct WorkerParts {
  SimWorld* world = nullptr;
  SimNetwork* network = nullptr;
  CallBoard* board = nullptr;
};

// What every simulated worker has beside its machines: an identity, open legs, and a pace.
class SimWorker : public SimProcess {
 public:
  SimWorker(const WorkerParts& parts, std::string address, std::string instance_id, const WorkerPace& pace)
      : SimProcess(parts.world, parts.network, std::move(address), std::move(instance_id), pace.longest_hop),
        board_(parts.board),
        pace_(pace) {}

  // What GetServerInfo answers.
  virtual v1::GetServerInfoResponse Info() const = 0;
  // What GetLoad answers.
  virtual v1::GetLoadResponse Load() const = 0;
  // Answers DRAINING to probes and refuses new legs; what runs goes on.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }
  // From now on steps take this many times as long.
  void set_slowness(double factor) { slowness_ = factor; }

  virtual KvPools& pools() = 0;
  // A leg of this attempt is open here, in the eyes of the scheduler.
  virtual bool Holds(const TransferId& transfer) const = 0;
  // No leg, no landing, nothing that moves.
  virtual bool Idle() const = 0;
  // Idle, and nothing is remembered or waited for either.
  virtual absl::Status CheckForgotten() const = 0;
  virtual absl::Status CheckInvariants() const = 0;

 protected:
  v1::GetServerInfoResponse Describe(v1::Role role, const ScriptedEngine& engine, uint32_t max_running) const;
  static v1::GetLoadResponse Describe(const WorkerLoad& load);
  absl::Duration StepTime(uint32_t rows) const {
    return (pace_.step_base + pace_.step_row * rows) * slowness_;
  }

  CallBoard* const board_;
  const WorkerPace pace_;

 private:
  bool draining_ = false;
  double slowness_ = 1;
};

// How a draining process answers new work.
absl::Status DrainingStatus();

// The open legs of a worker, each with the stream it came by.
template <typename Event>
class SimLegs {
 public:
  // `on_event` runs at the router with what the leg's events are.
  using OnEvent = std::function<void(const Event&)>;

  LegId Open(std::shared_ptr<SimStream> stream, const std::string& transfer_id, OnEvent on_event) {
    const LegId id = next_++;
    absl::StatusOr<TransferId> transfer = TransferId::FromBytes(transfer_id);
    legs_[id] = {std::move(stream), transfer.ok() ? *transfer : TransferId(), std::move(on_event)};
    return id;
  }
  void Send(LegId id, const char* what, Event event) {
    const auto it = legs_.find(id);
    if (it == legs_.end()) return;
    it->second.stream->Send(SimStream::kServer, what,
                            [event = std::move(event), on_event = it->second.on_event] { on_event(event); });
  }
  void Close(LegId id, const absl::Status& status) {
    const auto it = legs_.find(id);
    if (it == legs_.end()) return;
    it->second.stream->Finish(status);
    legs_.erase(it);
  }
  // The peer has closed the leg; false when it had ended before.
  bool Closed(LegId id) { return legs_.erase(id) > 0; }

  bool empty() const { return legs_.empty(); }
  bool Holds(const TransferId& transfer) const {
    for (const auto& [id, leg] : legs_) {
      if (leg.transfer == transfer) return true;
    }
    return false;
  }
  TransferId transfer(LegId id) const {
    const auto it = legs_.find(id);
    return it == legs_.end() ? TransferId() : it->second.transfer;
  }

 private:
  struct Leg {
    std::shared_ptr<SimStream> stream;
    TransferId transfer;
    OnEvent on_event;
  };
  std::map<LegId, Leg> legs_;
  LegId next_ = 1;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_WORKER_H_
