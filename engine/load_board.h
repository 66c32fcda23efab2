#ifndef BATON_ENGINE_LOAD_BOARD_H_
#define BATON_ENGINE_LOAD_BOARD_H_

#include <cstdint>

#include "baton/v1/control.pb.h"
#include "common/metrics.h"
#include "common/mutex.h"
#include "engine/job.h"
#include "engine/kv/kv_pools.h"

namespace baton {

// How far a loop has come, for whoever watches whether it stands still.
struct LoopPulse {
  uint64_t turns = 0;     // of the loop: events, steps and timers
  uint64_t steps = 0;     // of the engine
  bool has_work = false;  // there is something to compute
};

// A worker's load for those who ask and for the metrics. The loop publishes, any thread reads.
class LoadBoard {
 public:
  // Both outlive the board.
  LoadBoard(const KvPools* pools, Metrics* metrics);

  // Called by the loop, after each of its turns. False while blocks are DRAINING: whoever reads or writes
  // them does not report to the loop, so it publishes again soon.
  bool Publish(const WorkerLoad& load);

  // Control.GetLoad: what was published last, and the blocks as they are now.
  v1::GetLoadResponse Read() const;
  LoopPulse pulse() const;

 private:
  const KvPools* const pools_;
  prometheus::Gauge& running_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& waiting_tokens_;
  prometheus::Gauge* blocks_[kBlockStates];

  mutable Mutex mutex_;
  WorkerLoad load_ ABSL_GUARDED_BY(mutex_);
  uint64_t turns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_LOAD_BOARD_H_
