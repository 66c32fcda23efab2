#ifndef BATON_TESTS_SIMULATION_SIM_NODES_H_
#define BATON_TESTS_SIMULATION_SIM_NODES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "baton/v1/control.pb.h"
#include "decode_service/decode_scheduler.h"
#include "kv_transfer/kv_sender.h"
#include "kv_transfer/landing_table.h"
#include "prefill_service/prefill_scheduler.h"
#include "tests/simulation/sim_world.h"
#include "tests/support/scripted_engine.h"

namespace baton {

// How long things take on a simulated worker and on the links.
struct SimDelays {
  absl::Duration link_min = absl::Microseconds(100);
  absl::Duration link_max = absl::Microseconds(100);
  absl::Duration step_base = absl::Milliseconds(1);
  absl::Duration step_row = absl::Microseconds(50);
  double bytes_per_second = 1e9;
};

// A leg between the router and a worker. Either end may close it; what is on the way to a closed end is
// dropped.
struct SimLeg {
  SimLeg(SimWorld* world, const SimDelays& delays)
      : to_worker(world, delays.link_min, delays.link_max),
        to_router(world, delays.link_min, delays.link_max) {}
  SimChannel to_worker;
  SimChannel to_router;
  bool router_open = true;
  std::function<void(const absl::Status&)> closed_at_router;
};

// What every simulated worker has: an identity, a life, its legs, and a loop that takes one step at a time.
class SimWorker {
 public:
  SimWorker(SimWorld* world, const SimDelays& delays, std::string name, std::string instance_id);
  virtual ~SimWorker() = default;

  const std::string& name() const { return name_; }
  const std::string& instance_id() const { return instance_id_; }
  bool alive() const { return alive_; }
  // The router has cancelled the leg.
  void OnLegCancelled(const std::shared_ptr<SimLeg>& leg);
  // The process is gone: its peers' streams break, nothing of it runs any more.
  virtual void Kill();
  virtual v1::GetServerInfoResponse Info() const = 0;
  virtual KvPools& pools() = 0;
  virtual absl::Status CheckInvariants() const = 0;
  virtual bool Idle() const = 0;

 protected:
  LegId AddLeg(std::shared_ptr<SimLeg> leg);
  virtual void OnLegClosed(LegId id) = 0;
  // Runs `event` unless this process has died meanwhile.
  std::function<void()> IfAlive(std::function<void()> event);
  void CloseLegToRouter(LegId id, const absl::Status& status);
  // What a worker of `role` over `engine` says of itself.
  v1::GetServerInfoResponse Describe(v1::Role role, const ScriptedEngine& engine, uint32_t max_running) const;

  SimWorld* const world_;
  const SimDelays delays_;
  std::map<LegId, std::shared_ptr<SimLeg>> legs_;

 private:
  const std::string name_;
  const std::string instance_id_;
  std::shared_ptr<bool> life_ = std::make_shared<bool>(true);
  bool alive_ = true;
  LegId next_leg_ = 1;
};

// The decode service's real machines.
class SimDecode : public SimWorker {
 public:
  SimDecode(SimWorld* world, const SimDelays& delays, std::string name, std::string instance_id,
            const ScriptedEngine::Options& engine, const DecodeSchedulerOptions& options);

  void OnRequest(std::shared_ptr<SimLeg> leg, v1::DecodeRequest request, absl::Time deadline,
                 std::function<void(const v1::DecodeEvent&)> to_router);

  // The Land streams, as the network brings them. `reply` and `closed` go back to the sender.
  LandStreamId Connect(std::function<void(v1::LandReply)> reply, std::function<void(absl::Status)> closed);
  void OnLandRequest(LandStreamId stream, v1::LandRequest request);
  void OnLandClosed(LandStreamId stream, const absl::Status& status);
  // A piece's bytes arrive in full; false when nothing waits for it any more.
  bool Arrive(const TransferId& transfer, uint32_t piece, const std::vector<DeviceSpan>& source);
  // The sender has begun to write the piece: it can no longer be withdrawn.
  void BeginWrite(const TransferId& transfer, uint32_t piece);

  void Kill() override;
  v1::GetServerInfoResponse Info() const override;
  KvPools& pools() override { return engine_.kv(); }
  absl::Status CheckInvariants() const override;
  bool Idle() const override {
    return scheduler_.open_legs() == 0 && table_.landings() == 0 && table_.draining() == 0 &&
           receives_.empty();
  }
  uint64_t bytes_landed() const { return bytes_landed_; }

 private:
  void OnLegClosed(LegId id) override;
  struct Receive {
    LandStreamId stream;
    std::vector<DeviceSpan> destination;
    bool writing = false;
  };
  struct LandStream {
    std::function<void(v1::LandReply)> reply;
    std::function<void(absl::Status)> closed;
  };
  void Perform(DecodeScheduler::Actions actions);
  void Perform(landing::Actions actions);
  void Step();
  void Arm();

  ScriptedEngine engine_;
  DecodeScheduler scheduler_;
  LandingTable table_;
  SimTimer timer_;
  SimTimer land_timer_;
  std::map<LegId, std::function<void(const v1::DecodeEvent&)>> to_router_;
  std::map<LandStreamId, LandStream> streams_;
  std::map<std::pair<TransferId, uint32_t>, Receive> receives_;
  LandStreamId next_stream_ = 1;
  bool stepping_ = false;
  uint64_t bytes_landed_ = 0;
};

// The prefill service's real machines.
class SimPrefill : public SimWorker {
 public:
  // `dial` finds the decode worker that listens at an address, or null.
  SimPrefill(SimWorld* world, const SimDelays& delays, std::string name, std::string instance_id,
             const ScriptedEngine::Options& engine, const PrefillSchedulerOptions& options,
             std::function<std::shared_ptr<SimDecode>(const std::string&)> dial);

  void OnRequest(std::shared_ptr<SimLeg> leg, v1::PrefillRequest request, absl::Time deadline,
                 std::function<void(const v1::PrefillEvent&)> to_router);
  v1::GetServerInfoResponse Info() const override;
  KvPools& pools() override { return engine_.kv(); }
  absl::Status CheckInvariants() const override;
  bool Idle() const override { return scheduler_.open_legs() == 0 && senders_.empty(); }
  void Kill() override;

 private:
  void OnLegClosed(LegId id) override;
  // One Land stream as this side sees it.
  struct Land {
    Land(SimWorld* world, const SimDelays& delays)
        : out(world, delays.link_min, delays.link_max), back(world, delays.link_min, delays.link_max) {}
    std::unique_ptr<KvSender> sender;
    std::shared_ptr<SimDecode> peer;
    std::shared_ptr<LandStreamId> stream = std::make_shared<LandStreamId>(0);
    bool opened = false;
    bool closed = false;
    SimChannel out;
    SimChannel back;
    std::unique_ptr<SimTimer> timer;
  };
  using SenderEvent = std::function<KvSender::Actions(KvSender&)>;

  void Perform(PrefillScheduler::Actions actions);
  void Perform(const TransferId& id, KvSender::Actions actions);
  void StartSender(PrefillScheduler::StartHandoff start);
  void ToSender(const TransferId& id, const SenderEvent& event);
  void SendLand(const TransferId& id, Land& land, v1::LandRequest request);
  void MovePiece(const TransferId& id, Land& land, KvSender::MovePiece move);
  void Step();
  void Arm();

  ScriptedEngine engine_;
  PrefillScheduler scheduler_;
  const std::function<std::shared_ptr<SimDecode>(const std::string&)> dial_;
  SimTimer timer_;
  std::map<LegId, std::function<void(const v1::PrefillEvent&)>> to_router_;
  std::map<TransferId, std::unique_ptr<Land>> senders_;
  bool stepping_ = false;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_NODES_H_
