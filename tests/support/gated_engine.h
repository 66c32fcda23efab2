#ifndef BATON_TESTS_SUPPORT_GATED_ENGINE_H_
#define BATON_TESTS_SUPPORT_GATED_ENGINE_H_

#include <utility>

#include "common/mutex.h"
#include "engine/engine.h"

namespace baton {

// An engine whose steps wait at a gate, so that a test can act while one runs. The gate is open at first.
class GatedEngine final : public Engine {
 public:
  // `engine` outlives the gate.
  explicit GatedEngine(Engine* engine) : engine_(engine) {}

  const EngineInfo& info() const override { return engine_->info(); }
  KvPools& kv() const override { return engine_->kv(); }
  StepResult Execute(const StepPlan& plan, const LayersDone& layers_done) override {
    {
      MutexLock lock(&mutex_);
      if (closed_) {
        ++waiting_;
        changed_.SignalAll();
        while (passes_ == 0) changed_.Wait(&mutex_);
        --passes_;
      }
    }
    return engine_->Execute(plan, layers_done);
  }

  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(&mutex_);
    closed_ = false;
    passes_ += std::exchange(waiting_, 0);
    changed_.SignalAll();
  }
  // Until a step waits at the closed gate.
  void AwaitStep() {
    MutexLock lock(&mutex_);
    while (waiting_ == 0) changed_.Wait(&mutex_);
  }

 private:
  Engine* const engine_;
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // at the gate, without a pass
  int passes_ ABSL_GUARDED_BY(mutex_) = 0;   // given, not yet used
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_GATED_ENGINE_H_
