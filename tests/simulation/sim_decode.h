#ifndef BATON_TESTS_SIMULATION_SIM_DECODE_H_
#define BATON_TESTS_SIMULATION_SIM_DECODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "baton/v1/decode.pb.h"
#include "baton/v1/kv_transfer.pb.h"
#include "decode_service/decode_scheduler.h"
#include "kv_transfer/kv_backend.h"
#include "kv_transfer/landing_table.h"
#include "tests/simulation/sim_worker_loop.h"

namespace baton {

// The decode service: its real scheduler on the loop, its real landing table and KV backend on the transfer
// thread.
class SimDecode : public SimWorkerLoop<SimDecode, DecodeScheduler> {
 public:
  struct Options {
    ScriptedEngine::Options engine;
    DecodeSchedulerOptions scheduler;
    ReceiverLimits receiver;
  };

  SimDecode(const WorkerParts& parts, std::string address, std::string instance_id, const WorkerPace& pace,
            const Options& options);

  ~SimDecode() override;

  // A call of Land, with its first message. Replies go to `on_reply`, at the sender.
  void OnLand(const std::shared_ptr<SimStream>& stream, const v1::LandRequest& open,
              std::function<void(const v1::LandReply&)> on_reply);
  void OnLandMessage(const SimStream* stream, const v1::LandRequest& request);

  v1::GetServerInfoResponse Info() const override;
  bool Idle() const override;
  absl::Status CheckForgotten() const override;
  absl::Status CheckInvariants() const override;
  uint64_t bytes_landed() const { return bytes_landed_; }

 private:
  friend class SimWorkerLoop<SimDecode, DecodeScheduler>;

  struct LandStream {
    std::shared_ptr<SimStream> stream;
    std::function<void(const v1::LandReply&)> on_reply;
  };

  using SimWorkerLoop::Perform;
  void Perform(DecodeScheduler::StartLanding& action);
  void Perform(DecodeScheduler::DropLanding& action);
  void Perform(DecodeScheduler::Preempted&) {}
  void Perform(DecodeScheduler::Resumed&) {}
  const char* Observe(const TransferId& transfer, const v1::DecodeEvent& event);
  void Run(StepPlan plan);

  void Perform(landing::Actions actions);
  void Do(landing::SendReply& action);
  void Do(landing::ReceivePiece& action);
  void Do(landing::CloseStream& action);
  void Do(landing::Landed& action);
  // To the table and to the scheduler, each on its own thread.
  void ToTable(std::function<landing::Actions()> event);
  void ToScheduler(std::function<DecodeScheduler::Actions()> event);

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  // Of the transfer thread.
  LandingTable table_;
  SimTimer land_timer_;
  std::map<LandStreamId, LandStream> streams_;
  std::map<const SimStream*, LandStreamId> stream_ids_;
  std::map<TransferId, uint32_t> receiving_;  // pieces posted to the backend
  LandStreamId next_stream_ = 1;
  uint64_t bytes_landed_ = 0;
  std::unique_ptr<KvReceiveBackend> backend_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_DECODE_H_
