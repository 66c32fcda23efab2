#ifndef BATON_DECODE_SERVICE_DECODE_RPC_H_
#define BATON_DECODE_SERVICE_DECODE_RPC_H_

#include "baton/v1/decode.grpc.pb.h"
#include "common/clock.h"
#include "common/drain_state.h"
#include "decode_service/decode_worker.h"
#include "engine/leg_rpc.h"

namespace baton {

// The gRPC face of a DecodeWorker. Its calls end before the worker does.
class DecodeRpc final : public v1::DecodeWorker::CallbackService {
 public:
  DecodeRpc(DecodeWorker* worker, DrainState* drain, const Clock* clock)
      : worker_(worker), drain_(drain), clock_(clock) {}

  grpc::ServerWriteReactor<v1::DecodeEvent>* Decode(grpc::CallbackServerContext* context,
                                                    const v1::DecodeRequest* request) override {
    return StartLeg<v1::DecodeEvent>(*context, *request, worker_, drain_, clock_);
  }

 private:
  DecodeWorker* const worker_;
  DrainState* const drain_;
  const Clock* const clock_;
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_RPC_H_
