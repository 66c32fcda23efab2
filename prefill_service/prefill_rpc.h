#ifndef BATON_PREFILL_SERVICE_PREFILL_RPC_H_
#define BATON_PREFILL_SERVICE_PREFILL_RPC_H_

#include "baton/v1/prefill.grpc.pb.h"
#include "common/clock.h"
#include "common/drain_state.h"
#include "engine/leg_rpc.h"
#include "prefill_service/prefill_worker.h"

namespace baton {

// The gRPC face of a PrefillWorker. Its calls end before the worker does.
class PrefillRpc final : public v1::PrefillWorker::CallbackService {
 public:
  PrefillRpc(PrefillWorker* worker, DrainState* drain, const Clock* clock)
      : worker_(worker), drain_(drain), clock_(clock) {}

  grpc::ServerWriteReactor<v1::PrefillEvent>* Prefill(grpc::CallbackServerContext* context,
                                                      const v1::PrefillRequest* request) override {
    return StartLeg<v1::PrefillEvent>(*context, *request, worker_, drain_, clock_);
  }

 private:
  PrefillWorker* const worker_;
  DrainState* const drain_;
  const Clock* const clock_;
};

}  // namespace baton

#endif  // BATON_PREFILL_SERVICE_PREFILL_RPC_H_
