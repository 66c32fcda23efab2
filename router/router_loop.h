#ifndef BATON_ROUTER_ROUTER_LOOP_H_
#define BATON_ROUTER_ROUTER_LOOP_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/executor.h"
#include "common/mutex.h"
#include "common/random_source.h"
#include "router/client_stream.h"
#include "router/leg_client.h"
#include "router/router.h"
#include "router/router_metrics.h"
#include "router/worker_stubs.h"

namespace baton {

// Runs a Router on its executor: brings events to it and performs its actions. Decides nothing. Public
// methods may be called from any thread and do not block; `executor` is stopped before the loop is destroyed.
class RouterLoop {
 public:
  // What outlives the loop. `random` is safe to call from any thread.
  struct Parts {
    const Tokenizer* tokenizer = nullptr;
    Executor* executor = nullptr;
    const Clock* clock = nullptr;
    RandomSource* random = nullptr;
    RouterMetrics* metrics = nullptr;
    WorkerStubs* stubs = nullptr;
  };
  RouterLoop(const RouterOptions& options, std::string model_hash, const Parts& parts);

  CallId NewCall() { return ++last_call_; }
  // The answer of `call` goes to `stream`, whose End comes exactly once.
  void Start(CallId call, CallSpec spec, std::shared_ptr<ClientStream> stream);
  void ClientGone(CallId call);
  void Abort(std::string request_id, std::function<void(absl::StatusOr<bool> found)> done);

  // Changes the registry on the executor, then lets the router look again.
  void UpdateWorkers(std::function<void(WorkerRegistry&)> change);

  // As of the latest event: for Control and for reading requests.
  struct Board {
    v1::ListWorkersResponse workers;
    v1::GetLoadResponse load;
    v1::ModelInfo model;  // what serving workers serve
    bool can_serve = false;
  };
  Board board() const ABSL_LOCKS_EXCLUDED(board_mutex_);
  // Waits until gRPC is done with every leg. The calls have ended by then, and no new ones come.
  void AwaitNoLegs() ABSL_LOCKS_EXCLUDED(legs_mutex_);

  // Called on the executor whenever can_serve changes.
  void OnServingChange(std::function<void(bool)> listener);

 private:
  using AnyLeg =
      std::variant<std::shared_ptr<LegClient<v1::PrefillEvent>>, std::shared_ptr<LegClient<v1::DecodeEvent>>>;

  void Perform(RouterActions actions);
  void Do(OpenPrefillLeg& open);
  void Do(OpenDecodeLeg& open);
  void Do(CancelLeg& cancel);
  void Do(SendToClient& send);
  void Do(EndCall& end);
  void Do(AttemptLost& lost);
  void Do(RetryHeld&) { metrics_->OnRetryHeld(); }
  void OnLegOpened() ABSL_LOCKS_EXCLUDED(legs_mutex_);
  void OnLegClosed(const LegKey& key, const absl::Status& status) ABSL_LOCKS_EXCLUDED(legs_mutex_);
  void Arm();
  void Publish();
  void PublishWorkers();

  Executor* const executor_;
  const Clock* const clock_;
  RouterMetrics* const metrics_;
  WorkerStubs* const stubs_;
  std::atomic<CallId> last_call_ = 0;

  // Of the executor.
  Router router_;
  std::map<LegKey, AnyLeg> legs_;
  std::unordered_map<CallId, std::shared_ptr<ClientStream>> streams_;
  Executor::TimerId timer_ = 0;
  absl::Time timer_at_ = absl::InfiniteFuture();
  std::function<void(bool)> serving_listener_;

  Mutex legs_mutex_;
  CondVar no_legs_;
  uint32_t legs_in_flight_ ABSL_GUARDED_BY(legs_mutex_) = 0;

  mutable Mutex board_mutex_;
  Board board_ ABSL_GUARDED_BY(board_mutex_);
};

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_LOOP_H_
