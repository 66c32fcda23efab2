#ifndef BATON_ROUTER_INFERENCE_SERVICE_H_
#define BATON_ROUTER_INFERENCE_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/clock.h"
#include "common/credentials.h"
#include "common/drain_state.h"
#include "common/random_source.h"
#include "grpcpp/support/byte_buffer.h"
#include "router/client_quota.h"
#include "router/read_request.h"
#include "router/router_loop.h"
#include "router/served_model.h"

namespace baton {

// baton.v1.Inference: reads and checks calls on gRPC's threads, tokenizes there, and hands them to the
// router's loop. Every method takes bytes and parses them itself: see common/parse_message.h. Outlives the
// server that it is registered with.
class InferenceService final : public v1::Inference::Service {
 public:
  struct Options {
    RequestLimits limits;
    absl::Duration longest_request =
        absl::Minutes(10);              // the deadline of calls that bring none, or a later one
    uint32_t max_unread_messages = 64;  // of a stream whose client does not read, each of many tokens
    uint32_t max_streams_per_client = 1024;
  };
  // What outlives the service. `random` is safe to call from any thread.
  struct Parts {
    const ServedModel* model = nullptr;
    RouterLoop* loop = nullptr;
    const Clock* clock = nullptr;
    RandomSource* random = nullptr;
    DrainState* drain = nullptr;
    std::shared_ptr<const Credentials> credentials;  // null: a plaintext port
  };
  InferenceService(Options options, const Parts& parts);

 private:
  // A call that passed every check and may start.
  struct Admitted {
    CallSpec spec;
    DrainState::Work work;
    std::shared_ptr<ClientQuota::Slot> slot;  // held as long as the call
  };
  absl::StatusOr<Admitted> Admit(grpc::CallbackServerContext* context, const grpc::ByteBuffer& bytes);

  grpc::ServerUnaryReactor* Generate(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     v1::GenerateResponse* response);
  grpc::ServerWriteReactor<v1::GenerateStreamResponse>* GenerateStream(grpc::CallbackServerContext* context,
                                                                       const grpc::ByteBuffer* request);
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context, const v1::TokenizeRequest& request,
                                     v1::TokenizeResponse* response);
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest& request,
                                       v1::DetokenizeResponse* response);

  const Options options_;
  const Parts parts_;
  ClientQuota quota_;
};

}  // namespace baton

#endif  // BATON_ROUTER_INFERENCE_SERVICE_H_
