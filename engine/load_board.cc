#include "engine/load_board.h"

namespace baton {

LoadBoard::LoadBoard(const KvPools* pools, Metrics* metrics)
    : pools_(pools),
      running_(metrics->Get<Metric::kRequestsRunning>()),
      waiting_(metrics->Get<Metric::kRequestsWaiting>()),
      waiting_tokens_(metrics->Get<Metric::kWaitingTokens>()) {
  for (int state = 0; state < kBlockStates; ++state) {
    blocks_[state] = &metrics->Get<Metric::kKvBlocks>(BlockStateName(static_cast<BlockState>(state)));
  }
  Publish(WorkerLoad());
}

bool LoadBoard::Publish(const WorkerLoad& load) {
  running_.Set(load.running);
  waiting_.Set(load.waiting);
  waiting_tokens_.Set(load.waiting_tokens);
  const BlockCounts counts = pools_->counts();
  for (int state = 0; state < kBlockStates; ++state) blocks_[state]->Set(counts.by_state[state]);
  MutexLock lock(&mutex_);
  load_ = load;
  ++turns_;
  return counts[BlockState::kDraining] == 0;
}

v1::GetLoadResponse LoadBoard::Read() const {
  v1::GetLoadResponse response;
  for (uint32_t group = 0; group < pools_->groups(); ++group) {
    const BlockCounts counts = pools_->pool(group).counts();
    v1::BlockLoad& blocks = *response.add_blocks();
    blocks.set_free(counts[BlockState::kFree]);
    blocks.set_reserved(counts[BlockState::kReserved]);
    blocks.set_landing(counts[BlockState::kLanding]);
    blocks.set_active(counts[BlockState::kActive]);
    blocks.set_draining(counts[BlockState::kDraining]);
  }
  MutexLock lock(&mutex_);
  response.set_requests_running(load_.running);
  response.set_requests_waiting(load_.waiting);
  response.set_waiting_tokens(load_.waiting_tokens);
  response.set_steps(static_cast<double>(load_.steps));
  response.set_batch_size(load_.batch_size);
  return response;
}

LoopPulse LoadBoard::pulse() const {
  MutexLock lock(&mutex_);
  return {.turns = turns_, .steps = load_.steps, .has_work = load_.running > 0};
}

}  // namespace baton
