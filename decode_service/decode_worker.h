#ifndef BATON_DECODE_SERVICE_DECODE_WORKER_H_
#define BATON_DECODE_SERVICE_DECODE_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/decode.pb.h"
#include "common/clock.h"
#include "common/executor.h"
#include "common/metrics.h"
#include "common/outgoing_stream.h"
#include "common/random_source.h"
#include "decode_service/decode_scheduler.h"
#include "engine/engine.h"
#include "engine/leg_table.h"
#include "engine/load_board.h"
#include "engine/step_loop.h"
#include "kv_transfer/handoff_receiver.h"

namespace baton {

// The loop of a decode worker: brings events to the scheduler and performs its actions, runs the steps it
// plans. Decides nothing. Public methods may be called from any thread and do not block.
//
//   the server of land_service() shuts down, then executor.Stop(), then comes the worker's end
class DecodeWorker final : private StepLoopBody {
 public:
  using Stream = OutgoingStream<v1::DecodeEvent>;

  struct Options {
    DecodeSchedulerOptions scheduler;  // its `transports` are filled in here
    std::vector<KvBackendKind> transports;
  };
  // What outlives the worker. The executor is its alone: its thread computes. `random` is used by that
  // thread.
  struct Parts {
    Engine* engine = nullptr;
    Device* device = nullptr;
    Executor* executor = nullptr;
    const Clock* clock = nullptr;
    RandomSource* random = nullptr;
    Metrics* metrics = nullptr;
  };

  DecodeWorker(Options options, const Parts& parts);
  ~DecodeWorker() override;

  // The address that landings name. Requests that come before it are refused with UNAVAILABLE.
  void Advertise(std::string address);
  // Where prefill workers bring KV: to be registered with the server at that address.
  grpc::Service* land_service() { return receiver_->service(); }

  // Before the first request: the engine's first steps run for nobody, and are measured.
  void Start();
  LegId NewLeg() { return ++last_leg_; }
  // The events of `leg` go to `stream`, which is finished when the leg ends, unless OnLegClosed comes first.
  void OnRequest(LegId leg, std::shared_ptr<Stream> stream, v1::DecodeRequest request, absl::Time received,
                 absl::Time deadline);
  void OnLegClosed(LegId leg);
  // `done` is called on the loop's thread, or in this call with UNAVAILABLE once the loop has stopped.
  void Abort(std::string request_id, std::function<void(absl::StatusOr<bool> found)> done);

  v1::GetLoadResponse load() const { return board_.Read(); }
  // For Control.GetServerInfo.
  const std::vector<std::string>& transports() const { return receiver_->transports(); }

 private:
  bool Step() override;
  absl::Time NextTimer() override;
  void OnTimer() override;
  void OnTurned() override;

  void Begin(LegId leg, std::shared_ptr<Stream> stream, const v1::DecodeRequest& request, absl::Time received,
             absl::Time deadline);
  void Perform(DecodeScheduler::Actions actions);
  void Perform(DecodeScheduler::SendEvent& action);
  void Perform(DecodeScheduler::CloseLeg& action);
  void Perform(DecodeScheduler::StartLanding& action);
  void Perform(DecodeScheduler::DropLanding& action);
  void Observe(const v1::DecodeEvent& event);

  const uint32_t warm_up_rows_;
  Engine* const engine_;
  const Clock* const clock_;
  Metrics* const metrics_;
  prometheus::Histogram& batch_size_;
  std::atomic<LegId> last_leg_ = 0;
  LoadBoard board_;
  StepLoop loop_;
  // Goes after the scheduler: it reports to the loop, and takes what the scheduler drops.
  std::unique_ptr<HandoffReceiver> receiver_;
  // Of the loop.
  DecodeScheduler scheduler_;
  LegTable<v1::DecodeEvent> legs_;
  bool advertised_ = false;
  std::string_view finish_;  // of the answer whose leg is being closed, for the metrics
  absl::Time publish_at_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_WORKER_H_
