#ifndef BATON_PREFILL_SERVICE_PREFILL_WORKER_H_
#define BATON_PREFILL_SERVICE_PREFILL_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/prefill.pb.h"
#include "common/clock.h"
#include "common/executor.h"
#include "common/metrics.h"
#include "common/outgoing_stream.h"
#include "engine/engine.h"
#include "engine/leg_table.h"
#include "engine/load_board.h"
#include "engine/step_loop.h"
#include "kv_transfer/handoff_sender.h"
#include "prefill_service/prefill_scheduler.h"

namespace baton {

// The loop of a prefill worker: brings events to the scheduler and performs its actions, runs the steps it
// plans. Decides nothing. Public methods may be called from any thread and do not block.
//
//   executor.Stop() comes before the worker's end, and the end of what calls it before that.
class PrefillWorker final : private StepLoopBody {
 public:
  using Stream = OutgoingStream<v1::PrefillEvent>;

  struct Options {
    PrefillSchedulerOptions scheduler;
    std::string instance_id;
    std::vector<KvBackendKind> transports;
    ChannelFactory channels;  // to the decode workers that landings name
  };
  // What outlives the worker. The executor is its alone: its thread computes.
  struct Parts {
    Engine* engine = nullptr;
    Device* device = nullptr;
    Executor* executor = nullptr;
    const Clock* clock = nullptr;
    Metrics* metrics = nullptr;
  };

  PrefillWorker(Options options, const Parts& parts);
  ~PrefillWorker() override;

  // Before the first request: the engine's first steps run for nobody, and are measured.
  void Start();
  LegId NewLeg() { return ++last_leg_; }
  // The events of `leg` go to `stream`, which is finished when the leg ends, unless OnLegClosed comes first.
  void OnRequest(LegId leg, std::shared_ptr<Stream> stream, v1::PrefillRequest request, absl::Time received,
                 absl::Time deadline);
  void OnLegClosed(LegId leg);
  // `done` is called on the loop's thread, or in this call with UNAVAILABLE once the loop has stopped.
  void Abort(std::string request_id, std::function<void(absl::StatusOr<bool> found)> done);

  v1::GetLoadResponse load() const { return board_.Read(); }

 private:
  bool Step() override;
  absl::Time NextTimer() override;
  void OnTimer() override;
  void OnTurned() override;

  void Perform(PrefillScheduler::Actions actions);
  void Perform(PrefillScheduler::SendEvent& action);
  void Perform(PrefillScheduler::CloseLeg& action);
  void Perform(PrefillScheduler::StartHandoff& action);
  void Perform(PrefillScheduler::HandoffComputed& action);
  void Perform(PrefillScheduler::HandoffPromptDone& action);
  void Perform(PrefillScheduler::CancelHandoff& action);

  const uint32_t warm_up_rows_;
  Engine* const engine_;
  const Clock* const clock_;
  Metrics* const metrics_;
  prometheus::Histogram& batch_size_;
  std::atomic<LegId> last_leg_ = 0;
  LoadBoard board_;
  StepLoop loop_;
  // Of the loop.
  PrefillScheduler scheduler_;
  LegTable<v1::PrefillEvent> legs_;
  absl::Time publish_at_ = absl::InfiniteFuture();
  // Goes first: it reports to the loop.
  std::unique_ptr<HandoffSender> sender_;
};

}  // namespace baton

#endif  // BATON_PREFILL_SERVICE_PREFILL_WORKER_H_
