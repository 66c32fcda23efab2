#include "tests/simulation/sim_worker.h"

#include "common/error_details.h"
#include "tests/support/worker_info.h"

namespace baton {

absl::Status DrainingStatus() {
  return WithErrorInfo(absl::UnavailableError("this process is draining"), "DRAINING");
}

v1::GetServerInfoResponse SimWorker::Describe(v1::Role role, const ScriptedEngine& engine,
                                              uint32_t max_running) const {
  v1::GetServerInfoResponse info = WorkerInfo(role, instance_id(), engine.info().fingerprint);
  if (draining()) info.set_state(v1::SERVER_STATE_DRAINING);
  info.mutable_model()->set_context_tokens(engine.info().context_tokens);
  info.mutable_limits()->set_block_tokens(engine.kv().geometry().block_tokens);
  info.mutable_limits()->set_kv_capacity_tokens(static_cast<double>(engine.kv().capacity_tokens()));
  info.mutable_limits()->set_max_running(max_running);
  return info;
}

v1::GetLoadResponse SimWorker::Describe(const WorkerLoad& load) {
  v1::GetLoadResponse response;
  response.set_requests_running(load.running);
  response.set_requests_waiting(load.waiting);
  response.set_waiting_tokens(load.waiting_tokens);
  response.set_batch_size(load.batch_size);
  response.set_steps(static_cast<double>(load.steps));
  return response;
}

}  // namespace baton
