#ifndef BATON_TESTS_SIMULATION_SIM_PREFILL_H_
#define BATON_TESTS_SIMULATION_SIM_PREFILL_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "baton/v1/prefill.pb.h"
#include "kv_transfer/kv_backend.h"
#include "kv_transfer/kv_sender.h"
#include "kv_transfer/land_data_writer.h"
#include "prefill_service/prefill_scheduler.h"
#include "tests/simulation/sim_worker_loop.h"

namespace baton {

// The prefill service: its real scheduler on the loop, a real sender per handoff and the real KV backend on
// the transfer thread.
class SimPrefill : public SimWorkerLoop<SimPrefill, PrefillScheduler>, private LandDataWriter {
 public:
  struct Options {
    ScriptedEngine::Options engine;
    PrefillSchedulerOptions scheduler;
    PieceLimits pieces;
  };

  SimPrefill(const WorkerParts& parts, std::string address, std::string instance_id, const WorkerPace& pace,
             const Options& options);
  ~SimPrefill() override;

  // The next data that this worker sends arrives with a byte changed.
  void CorruptNextData() { corrupt_next_ = true; }

  v1::GetServerInfoResponse Info() const override;
  bool Idle() const override { return NoLegs() && handoffs_.empty(); }
  absl::Status CheckForgotten() const override;
  absl::Status CheckInvariants() const override;

 private:
  friend class SimWorkerLoop<SimPrefill, PrefillScheduler>;

  // One handoff as this side sees it.
  struct Handoff {
    explicit Handoff(SimExecutor* transfer) : timer(transfer) {}
    std::unique_ptr<KvSender> sender;
    std::string address;
    std::shared_ptr<SimStream> stream;
    Written unwritten;  // of the data on its way onto the stream, else null
    SimTimer timer;
  };
  using SenderEvent = std::function<KvSender::Actions(KvSender&)>;

  using SimWorkerLoop::Perform;
  void Perform(PrefillScheduler::StartHandoff& action);
  void Perform(PrefillScheduler::HandoffComputed& action);
  void Perform(PrefillScheduler::HandoffPromptDone& action);
  void Perform(PrefillScheduler::CancelHandoff& action);
  static const char* Observe(const TransferId& transfer, const v1::PrefillEvent& event);
  void Run(StepPlan plan);

  void StartHandoff(const PrefillScheduler::StartHandoff& start, PinnedKv source);
  void ToSender(const TransferId& id, const SenderEvent& event);
  void Perform(const TransferId& id, KvSender::Actions actions);
  void SendLand(const TransferId& id, Handoff& handoff, v1::LandRequest request);
  void OpenLand(const TransferId& id, Handoff& handoff, v1::LandRequest open);
  void MovePiece(const TransferId& id, KvSender::MovePiece& move);
  void OnFinished(const TransferId& id, const KvSender::Finished& finished);
  void AnswerUnwritten(const TransferId& id, const absl::Status& status);
  void WriteData(const TransferId& id, v1::LandData data, Written written) override;

  const PieceLimits pieces_;
  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  // Of the transfer thread.
  std::map<TransferId, std::unique_ptr<Handoff>> handoffs_;
  bool corrupt_next_ = false;
  std::unique_ptr<KvSendBackend> backend_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_PREFILL_H_
